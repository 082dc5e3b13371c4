import test from "ava";
import { classify } from "../../src/classify/classify.js";
import { compilePatterns } from "../../src/classify/patterns.js";

const withPatterns = (command: string, extra: string[], exclude: string[]) =>
  classify(command, { patterns: compilePatterns(extra, exclude).patterns });

test("a pattern of one's own makes a command heavy", (t) => {
  const found = withPatterns("cd x && ./import.sh big.csv", ["^\\./import\\.sh"], []);
  t.is(found.kind, "custom");
  t.is(found.matches[0]?.text, "./import.sh big.csv");
});

test("an exclusion wins over both", (t) => {
  t.false(withPatterns("npm test", [], ["^npm test$"]).heavy);
  t.false(withPatterns("timeout 60 npm test", [], ["^npm test$"]).heavy);
  t.false(withPatterns("./a", ["a"], ["a"]).heavy);
  t.true(withPatterns("npm test && npm ci", [], ["^npm test$"]).heavy);
});

test("a pattern that is none is told, the others work", (t) => {
  const { patterns, bad } = compilePatterns(["(", "ok"], ["["]);
  t.deepEqual(
    bad.map(({ pattern }) => pattern),
    ["(", "["],
  );
  t.is(patterns.extra("ok"), "ok");
});

test("a pattern cannot hold up a command", (t) => {
  const { patterns } = compilePatterns(["(a+)+$", "(a|a)*b", "(.*)*x"], []);
  t.is(patterns.extra(`${"a".repeat(9000)}!`), undefined);
});
