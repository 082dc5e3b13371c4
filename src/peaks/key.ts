/** Under which name the peak of a command is kept. */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Classification } from "../classify/classify.js";
import { isKnown } from "../shell/word.js";

/** A directory with one of these is a project. */
const MARKERS = [
  "package.json",
  "Cargo.toml",
  "go.mod",
  "pyproject.toml",
  "pom.xml",
  "build.gradle",
  "Makefile",
  ".git",
];
const DEEPEST = 64;
const LONGEST_KEY = 300;

/** The nearest directory upwards that is a project; the directory itself where none is. */
export const projectDirectory = (cwd: string, exists: (path: string) => boolean = existsSync): string => {
  let directory = cwd;
  for (let depth = 0; depth < DEEPEST; depth += 1) {
    if (MARKERS.some((name) => exists(join(directory, name)))) return directory;
    const parent = dirname(directory);
    if (parent === directory) break;
    directory = parent;
  }
  return cwd;
};

/**
 * The command without what changes from run to run: wrappers, variables, numbers of workers and seeds, paths
 * of temporary files. `timeout 60 npm test`, `NODE_OPTIONS=… npm test` and `npm test` are one.
 */
export const normaliseCommand = ({ runs }: Pick<Classification, "runs">): string =>
  runs
    .map(({ run }) => [basename(run.words[0]?.value ?? ""), ...run.words.slice(1).map(({ value }) => value)])
    .map((words) =>
      words
        .map(normaliseWord)
        .filter((word) => word !== "")
        .join(" "),
    )
    .join(" && ")
    .slice(0, LONGEST_KEY);

const WORKERS =
  /^(?:-[jnwTp]\d*|--(?:jobs|maxWorkers|workers|numprocesses|parallel|concurrency|max-workers|runInBand)(?:=.*)?)$/;

const normaliseWord = (word: string): string => {
  if (!isKnown(word)) return "?";
  if (WORKERS.test(word)) return "";
  if (/^(?:\/tmp\/|\/var\/tmp\/|\/dev\/shm\/)/.test(word)) return "TMP";
  return word.replaceAll(/\d+/g, "N");
};
