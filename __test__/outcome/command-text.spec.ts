import test from "ava";
import { commandText } from "../../src/outcome/command-text.js";

test("plain words stay as they are, others are quoted as a shell takes them", (t) => {
  t.is(commandText(["npm", "run", "build:web"]), "npm run build:web");
  t.is(commandText(["sh", "-c", "echo 'a b'; x"]), `sh -c 'echo '\\''a b'\\''; x'`);
  t.is(commandText(["", "a b"]), "'' 'a b'");
});

test("secrets are masked", (t) => {
  t.is(commandText(["deploy", "--token", "abc123"]), "deploy --token ***");
});

test("control characters cannot reach a terminal or break a line", (t) => {
  t.is(commandText(["a\u001B[31mb\nc\u0007"]), "'a\\x1b[31mb\\nc\\x07'");
});
