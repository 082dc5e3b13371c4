import test from "ava";
import { classify } from "../../src/classify/classify.js";
import { describeWork } from "../../src/outcome/next-step.js";
import { KINDS } from "../../src/tools/schema.js";

const EXAMPLES: Record<string, [command: string, step: RegExp]> = {
  test: ["npm --prefix demo/leaky-report test", /one test file at a time \(npm test -- FILE\)/],
  install: ["pip install torch", /wheels/],
  build: ["npx tsc -p .", /tsc -p/],
  compile: ["cargo build --release", /-p CRATE -j 1/],
  script: ["npm run lint", /./],
  container: ["docker build .", /one image at a time/],
  media: ["ffmpeg -i a.mkv b.mp4", /one thread/],
  ml: ["llama-cli -m a.gguf", /smaller/],
  browser: ["chromium --headless x", /one page/],
  agent: ["claude -p x", /one agent/],
  custom: ["./run.sh", /smaller parts/],
};

for (const kind of KINDS) {
  test(`${kind} work has a next step of its own`, (t) => {
    const [command, step] = EXAMPLES[kind] ?? ["", /./];
    const work = describeWork(classify(command));
    t.is(work.kind, kind);
    t.regex(work.nextStep, step);
    t.notRegex(work.nextStep, /\.$/);
  });
}

test("the tool behind a script is the one that is advised about", (t) => {
  const files = { read: () => JSON.stringify({ scripts: { test: "jest" } }) };
  const { nextStep } = describeWork(classify("npm test", { cwd: "/p", files }));
  t.regex(nextStep, /one test file at a time, with a single worker/);
});
