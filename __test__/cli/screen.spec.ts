import test from "ava";
import { difference } from "../../src/cli/screen.js";
import { glyphsFor } from "../../src/cli/watch.js";
import { ASCII_GLYPHS, UNICODE_GLYPHS } from "../../src/status/view/look.js";

test("only lines that differ are written, all at once", (t) => {
  t.is(difference(["a", "b"], ["a", "c"], 10), "\u001B[?2026h\u001B[2;1Hc\u001B[K\u001B[?2026l");
  t.is(difference(["a", "b"], ["a", "b"], 10), "");
});

test("lines that are gone are emptied", (t) => {
  t.is(difference(["a", "b"], ["a"], 10), "\u001B[?2026h\u001B[2;1H\u001B[K\u001B[?2026l");
});

test("at first, and after a resize, the screen is cleared", (t) => {
  t.true(difference(undefined, ["a"], 10).includes("\u001B[2J"));
});

test("a line up to the last column is not erased behind", (t) => {
  t.false(difference(["a"], ["漢字漢字漢"], 10).includes("\u001B[K"));
  t.false(difference(["a"], ["\u001B[1m0123456789\u001B[22m"], 10).includes("\u001B[K"));
});

test("characters of other sets and of the console are ASCII", (t) => {
  t.is(glyphsFor({ TERM: "xterm", LANG: "de_DE.UTF-8" }), UNICODE_GLYPHS);
  t.is(glyphsFor({ TERM: "xterm" }), UNICODE_GLYPHS);
  t.is(glyphsFor({ TERM: "xterm", LANG: "en_US.utf8", LC_ALL: "C" }), ASCII_GLYPHS);
  t.is(glyphsFor({ TERM: "linux", LANG: "C.UTF-8" }), ASCII_GLYPHS);
});
