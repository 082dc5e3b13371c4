import test from "ava";
import { isGateway, isHermes, startedByHermes } from "../../src/status/hermes.js";

const argv = (line: string) => ({ argv: line.split(" ") });

test("Hermes is recognised in the ways it is started", (t) => {
  for (const line of [
    "hermes gateway run",
    "/home/h/.local/bin/hermes chat",
    "/usr/bin/python3 /home/h/venv/bin/hermes gateway run",
    "python3.11 -m hermes_cli.main gateway",
    "python -u -m hermes_cli",
  ]) {
    t.true(isHermes(argv(line)), line);
  }
});

test("others are not", (t) => {
  for (const line of [
    "vim hermes",
    "python3 my.py hermes",
    "node hermes-headroom.js",
    "python3",
    "",
    "grep hermes x",
  ]) {
    t.false(isHermes(argv(line)), line);
  }
});

test("everything below Hermes is Hermes', nothing else, and circles end", (t) => {
  const processes = [
    { pid: 1, ppid: 0, argv: ["init"] },
    { pid: 10, ppid: 1, argv: ["hermes", "gateway"] },
    { pid: 11, ppid: 10, argv: ["bash", "-c", "npm test"] },
    { pid: 12, ppid: 11, argv: ["node"] },
    { pid: 20, ppid: 1, argv: ["sshd"] },
    { pid: 30, ppid: 31, argv: ["a"] },
    { pid: 31, ppid: 30, argv: ["b"] },
  ];
  t.deepEqual([...startedByHermes(processes)], [10, 11, 12]);
});

test("the gateway is told from the commands that manage it", (t) => {
  for (const text of [
    "hermes gateway",
    "hermes gateway run",
    "hermes -p work gateway run --replace",
    "/v/bin/python /v/bin/hermes gateway --verbose",
    "python3.11 -m hermes_cli.main gateway run",
  ]) {
    t.true(isGateway(argv(text)), text);
  }
  for (const text of [
    "hermes gateway status",
    "hermes gateway install",
    "hermes chat",
    "gateway run",
    "python3 server.py gateway run",
    "grep hermes gateway",
  ]) {
    t.false(isGateway(argv(text)), text);
  }
});
