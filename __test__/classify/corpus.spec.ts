import test from "ava";
import { classify } from "../../src/classify/classify.js";
import { classifyCases, CLASSIFY_FILES, type ClassifyCase } from "../support/corpus.js";

/** What is wrong about a verdict; `undefined` when nothing is. */
const faultOf = ({ command, heavy, kind }: ClassifyCase): string | undefined => {
  const found = classify(command);
  if (found.heavy !== heavy) return `heavy ${found.heavy}`;
  if (heavy && kind !== undefined && found.kind !== kind) return `kind ${found.kind}`;
  const shifted = found.matches.find((match) => command.slice(match.start, match.end) !== match.text);
  return shifted === undefined ? undefined : `span of ${shifted.text}`;
};

for (const name of CLASSIFY_FILES) {
  test(`${name}: every command is told right`, (t) => {
    const cases = classifyCases(name);
    const faults = cases.flatMap((found, index) => {
      const fault = faultOf(found);
      return fault === undefined ? [] : [{ line: index + 1, ...found, fault }];
    });
    t.log(`${cases.length} commands`);
    t.deepEqual(faults, []);
    t.true(cases.length > 0);
  });
}
