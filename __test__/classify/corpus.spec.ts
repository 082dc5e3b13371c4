import test from "ava";
import { classify } from "../../src/classify/classify.js";
import { classifyCases, CLASSIFY_FILES } from "../support/corpus.js";

for (const name of CLASSIFY_FILES) {
  for (const [index, { command, heavy, kind, note }] of classifyCases(name).entries()) {
    test(`${name}:${index + 1}: ${JSON.stringify(command)}`, (t) => {
      const found = classify(command);
      t.is(found.heavy, heavy, note);
      if (heavy && kind !== undefined) t.is(found.kind, kind as typeof found.kind, note);
      for (const match of found.matches) t.is(command.slice(match.start, match.end), match.text);
    });
  }
}
