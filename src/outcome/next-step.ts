/** What kind of work a command is, and the lighter way to do it. A word table, read from the argv alone. */

export interface Work {
  kind: "install" | "test" | "build" | "script" | "container" | "custom";
  /** What to try next, as an imperative sentence without its full stop. */
  nextStep: string;
}

const STEPS: Record<Work["kind"], string> = {
  install: "install fewer packages at a time, or prefer prebuilt ones to those that compile",
  test: "run one test file or one suite at a time, with a single worker",
  build: "build one target at a time with one job (-j1), or a smaller part",
  script: "run the steps of the script one by one, with a single worker each",
  container: "give the container its own memory limit and build one image at a time",
  custom: "do it in smaller parts, or with fewer workers at once",
};

const TEST_TOOLS = [
  "jest",
  "vitest",
  "mocha",
  "ava",
  "pytest",
  "tox",
  "nox",
  "playwright",
  "ctest",
  "rspec",
  "phpunit",
];
const BUILD_TOOLS = [
  "make",
  "gmake",
  "ninja",
  "tsc",
  "webpack",
  "vite",
  "rollup",
  "esbuild",
  "next",
  "gradle",
  "mvn",
  "cmake",
  "bazel",
];
const INSTALL_WORDS = ["install", "i", "ci", "add", "update", "upgrade", "sync"];
const SCRIPT_RUNNERS = ["npm", "pnpm", "yarn", "bun"];
const HAS_VERBS = [
  "cargo",
  "go",
  "dotnet",
  "pip",
  "pip3",
  "uv",
  "poetry",
  "gem",
  "bundle",
  "apt",
  "apt-get",
  "docker",
  "podman",
];
const LAUNCHERS = ["npx", "bunx", "uvx", "pipx", "env", "nice", "time", "timeout", "sudo"];

const NODE_STEPS = {
  one: "run one test file at a time (npm test -- FILE), with a single worker",
};

/** Reads the command's words; unknown work is `custom`. */
export const describeWork = (argv: readonly string[]): Work => {
  const words = argv.filter((word) => !word.startsWith("-") && !/^[A-Za-z_]\w*=/.test(word));
  const tools = words.map((word) => word.slice(word.lastIndexOf("/") + 1));
  while (tools.length > 1 && (LAUNCHERS.includes(tools[0] ?? "") || /^\d/.test(tools[0] ?? ""))) tools.shift();
  const [tool = "", ...rest] = tools;
  if (TEST_TOOLS.includes(tool)) return work("test");
  if (BUILD_TOOLS.includes(tool))
    return rest.some((word) => /^(test|check)$/.test(word)) ? work("test") : work("build");
  if (SCRIPT_RUNNERS.includes(tool)) return describeRunner(rest);
  if (HAS_VERBS.includes(tool)) return describeVerb(tool, rest);
  if (/^python[\d.]*$/.test(tool) && rest.some((word) => TEST_TOOLS.includes(word))) return work("test");
  return work("custom");
};

const describeRunner = (words: readonly string[]): Work => {
  if (words.some((word) => word === "test" || word === "t" || word.startsWith("test:")))
    return { ...work("test"), nextStep: NODE_STEPS.one };
  if (words.some((word) => word === "build" || word.startsWith("build:"))) return work("build");
  if (words.includes("run")) return work("script");
  return words.some((word) => INSTALL_WORDS.includes(word)) ? work("install") : work("script");
};

const describeVerb = (tool: string, words: readonly string[]): Work => {
  if (tool === "docker" || tool === "podman") return work("container");
  if (words.includes("test")) return work("test");
  if (words.some((word) => INSTALL_WORDS.includes(word))) return work("install");
  return words.some((word) => /^(build|check|run|publish)$/.test(word)) ? work("build") : work("custom");
};

const work = (kind: Work["kind"]): Work => ({ kind, nextStep: STEPS[kind] });
