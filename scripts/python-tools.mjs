/**
 * `node scripts/python-tools.mjs lint|format|types|test`: looks at the plugin with Python's own tools, kept in the
 * cache as a virtual environment, or runs its tests. Prints `skipped: …` where there is no Python 3.11 or newer.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TOOLS = ["ruff==0.17.6", "mypy==2.4.1"];
const PYTHONS = ["python3", "python3.11", "python3.12", "python3.13", "python3.14"];
const FOLDERS = ["hermes-plugin", "__test__/plugin"];

const run = (program, words, env = {}) =>
  spawnSync(program, words, {
    cwd: ROOT,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env },
    stdio: "inherit",
  }).status ?? 1;

const isUsable = (name) =>
  spawnSync(name, ["-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"], { stdio: "ignore" }).status === 0;

/** The tools' directory, made when it is missing. */
const tools = (python) => {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "hermes-headroom-test");
  const dir = join(cache, `python-tools-${TOOLS.join("-").replaceAll("==", "-")}`);
  const mark = join(dir, "ready");
  if (existsSync(mark)) return join(dir, "bin");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  const pip = [join(dir, "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...TOOLS];
  if (run(python, ["-m", "venv", dir]) !== 0 || run(pip[0], pip.slice(1)) !== 0) process.exit(1);
  writeFileSync(mark, "");
  return join(dir, "bin");
};

/** mypy wants a name without a hyphen. */
const packagePath = () => {
  const folder = join(ROOT, "target/python");
  mkdirSync(folder, { recursive: true });
  const link = join(folder, "headroom_plugin");
  if (!existsSync(link)) symlinkSync("../../hermes-plugin", link);
  return folder;
};

const WORK = {
  lint: (python) => run(join(tools(python), "ruff"), ["check", ...FOLDERS]),
  format: (python) => run(join(tools(python), "ruff"), ["format", "--check", ...FOLDERS]),
  fix: (python) => run(join(tools(python), "ruff"), ["format", ...FOLDERS]),
  types: (python) => run(join(tools(python), "mypy"), ["-p", "headroom_plugin"], { MYPYPATH: packagePath() }),
  test: (python) => run(python, ["-m", "unittest", "discover", "--verbose", "-s", "__test__/plugin"]),
};

const [what] = process.argv.slice(2);
const python = PYTHONS.find(isUsable);
if (WORK[what] === undefined) {
  process.stderr.write(`say one of: ${Object.keys(WORK).join(", ")}\n`);
  process.exitCode = 2;
} else if (python === undefined) {
  process.stdout.write("skipped: Python 3.11 or newer, with venv, is needed for the plugin's checks\n");
} else {
  process.exitCode = WORK[what](python);
}
