import test from "ava";
import { describeWork } from "../../src/outcome/next-step.js";

const KINDS: Record<string, string[]> = {
  test: [
    "npm test",
    "npm --prefix demo/leaky-report test",
    "npm run test:unit",
    "pnpm test",
    "npx jest --watch",
    "pytest -x",
    "python3 -m pytest",
    "cargo test",
    "go test ./...",
    "make check",
    "CI=1 npx vitest run",
  ],
  install: ["npm install", "npm ci", "yarn add left-pad", "pip install torch", "apt-get install -y gcc", "uv sync"],
  build: ["npm run build", "cargo build --release", "make -j8", "go build ./...", "/usr/bin/ninja", "npx tsc -p ."],
  script: ["npm run lint", "yarn"],
  container: ["docker build .", "podman run -it x"],
  custom: ["./run.sh", "ffmpeg -i a b", "", "cargo fmt"],
};

for (const [kind, commands] of Object.entries(KINDS)) {
  for (const command of commands) {
    test(`${JSON.stringify(command)} is ${kind}`, (t) => {
      const work = describeWork(command.split(" "));
      t.is(work.kind, kind as typeof work.kind);
      t.not(work.nextStep, "");
    });
  }
}
