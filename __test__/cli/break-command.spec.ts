import test from "ava";
import { breakCommand } from "../../src/cli/break-command.js";

const linesOf = (command: string, room: number): string[] =>
  breakCommand(command, room).map(({ start, end }) => command.slice(start, end));

test("a command that fits is one line", (t) => {
  t.deepEqual(linesOf("make -j8 all", 12), ["make -j8 all"]);
  t.deepEqual(linesOf("", 12), [""]);
});

test("it is broken before words, and room is left for the backslash", (t) => {
  t.deepEqual(linesOf("make -j8 all install", 12), ["make -j8", "all install"]);
  t.deepEqual(linesOf("make   -j8 && make  all", 12), ["make", "-j8 &&", "make  all"]);
});

test("quoted words, and texts that do not parse, stay in one piece", (t) => {
  t.deepEqual(linesOf("echo 'a b c d e f g h' b", 10), ["echo", "'a b c d e f g h'", "b"]);
  t.deepEqual(linesOf("echo 'a b c d e f g h", 10), ["echo 'a b c d e f g h"]);
  t.deepEqual(linesOf("echo `a b c d e f g h`", 10), ["echo", "`a b c d e f g h`"]);
});

test("a command's own line ends are kept", (t) => {
  t.deepEqual(linesOf("cat <<E\na b c d e f g\nE", 10), ["cat <<E", "a b c d e f g", "E"]);
  t.deepEqual(linesOf("a\n", 10), ["a", ""]);
});
