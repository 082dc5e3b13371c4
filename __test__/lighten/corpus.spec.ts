/** Rewritten texts are run in real bash; what the tools are called with is what counts. */
import test from "ava";
import { classify } from "../../src/classify/classify.js";
import { diskFiles } from "../../src/classify/scripts/files.js";
import { lighten } from "../../src/lighten/lighten.js";
import { lightenCases, LIGHTEN_FILES, type LightenCase } from "../support/corpus.js";
import { StubTools, type StubCall } from "../support/stub-tools.js";

/** Every name that a case may call, and a few that they lead through. */
const stubNames = (found: LightenCase, text: string): string[] => [
  ...(found.runs ?? []).map(({ argv }) => argv[0] ?? ""),
  ...(text.match(/[\w.+-]+/g) ?? []).filter((word) => ["sudo", "doas"].includes(word)),
];

const hasEnv = (call: StubCall, expected: Record<string, string> = {}): boolean =>
  Object.entries(expected).every(([name, value]) => call.env[name] === value);

for (const name of LIGHTEN_FILES) {
  for (const [index, found] of lightenCases(name).entries()) {
    const { command, profile, env = {}, files = {}, runs = [] } = found;
    test(`${name}:${index + 1}: ${JSON.stringify(command)} with ${profile.cpus} CPUs and ${profile.cap_mb} MB`, (t) => {
      const tools = new StubTools(stubNames(found, command));
      try {
        tools.addFiles(files);
        const classified = classify(command, { cwd: tools.work, files: diskFiles });
        const options = { cpus: profile.cpus, capMb: profile.cap_mb, environment: env };
        const result = lighten(command, classified, options);
        if (found.unchanged) {
          t.is(result.text, command, found.note);
          t.deepEqual(result.changes, []);
          return;
        }
        const calls = tools.run(result.text, env);
        t.deepEqual(
          calls.map(({ argv }) => argv),
          runs.map(({ argv }) => argv),
          `${result.text} (${found.note ?? ""})`,
        );
        for (const [at, call] of calls.entries()) {
          t.true(hasEnv(call, runs[at]?.env), `${result.text}: ${JSON.stringify(runs[at]?.env)} wanted`);
        }
        const again = lighten(result.text, classify(result.text, { cwd: tools.work, files: diskFiles }), options);
        t.is(again.text, result.text, "rewriting is idempotent");
      } finally {
        tools.remove();
      }
    });
  }
}
