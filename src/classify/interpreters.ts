/** `python -m pytest`, `node node_modules/.bin/jest`: the tool behind an interpreter. */
import { commandName } from "../shell/names.js";
import { optionNames, skipOptions } from "../shell/options.js";
import type { Run } from "../shell/simple-command.js";
import { isKnown, type ShellWord } from "../shell/word.js";
import { toolNamed, toolOfModule } from "../tools/lookup.js";

const PYTHON = /^(?:python|pypy|pythonw)\d*(?:\.\d+)*t?$|^py$/;
const NODE = /^(?:node|nodejs|tsx|ts-node)$/;
const OTHERS = /^(?:ruby|php|perl|jruby)\d*(?:\.\d+)*$/;

const PYTHON_VALUED = optionNames("-W -X -c -m --check-hash-based-pycs -Q");
const NODE_VALUED = optionNames(
  "-r --require --import --loader --experimental-loader -e --eval -p --print -C --conditions --env-file --env-file-if-exists --run --icu-data-dir --title --stack-trace-limit",
);
const OTHER_VALUED = optionNames("-I -r -e -d -c -C -f -z -E -x -W");

const SCRIPT_ENDING = /\.(?:[cm]?[jt]s|py|rb|php|phar|pl)$/;

/** The run of the tool; the same run when there is none behind it. */
export const throughInterpreter = (run: Run): Run => {
  const values = run.words.map(({ value }) => value);
  const name = commandName(values[0] ?? "");
  // `$PYTHON -m pytest`: a word that is not known, but says what it is.
  const isPython = PYTHON.test(name) || (!isKnown(name) && /python/i.test(run.words[0]?.source ?? ""));
  if (isPython) return throughPython(run, values);
  if (NODE.test(name)) return throughNode(run, values);
  if (OTHERS.test(name)) return throughScript(run, skipOptions(values, 1, OTHER_VALUED).next);
  return run;
};

/** The run whose program is the word at `index`, under another name. */
const renamed = (run: Run, index: number, name: string): Run => {
  const word = run.words[index];
  if (word === undefined) return run;
  return {
    ...run,
    words: [{ ...word, value: name }, ...run.words.slice(index + 1)],
    at: run.at < 0 ? -1 : run.at + index,
  };
};

const throughPython = (run: Run, values: string[]): Run => {
  let next = 1;
  while (next < values.length) {
    const word = values[next] ?? "";
    if (word === "-c" || word === "-") return run;
    if (word === "-m" || /^-[a-zA-Z]*m$/.test(word)) return throughModule(run, next + 1, values[next + 1] ?? "");
    if (/^-m./.test(word)) return throughModule(run, next, word.slice(2));
    if (!word.startsWith("-")) return throughScript(run, next);
    next += PYTHON_VALUED.has(word) ? 2 : 1;
  }
  return run;
};

const throughModule = (run: Run, index: number, module: string): Run => {
  const tool = toolOfModule(module) ?? toolNamed(module);
  const name = tool?.names.split(" ")[0] ?? `python -m ${module}`;
  return renamed(run, index, name);
};

const throughNode = (run: Run, values: string[]): Run => {
  const { options, next } = skipOptions(values, 1, NODE_VALUED);
  if (options.some(({ name }) => name === "--test")) return run;
  const script = options.find(({ name }) => name === "--run");
  if (script?.value !== undefined && script.valueIndex > script.index) {
    const word = run.words[script.valueIndex];
    if (word !== undefined) {
      const synthetic = (value: string): ShellWord => ({ ...word, value, end: word.pos, exact: false });
      return {
        ...run,
        words: [synthetic("npm"), synthetic("run"), ...run.words.slice(script.valueIndex)],
        at: run.at < 0 ? -1 : run.at + script.valueIndex - 2,
      };
    }
  }
  if (options.some(({ name }) => name === "-e" || name === "--eval" || name === "-p" || name === "--print")) return run;
  return throughScript(run, next);
};

/** A script by its path: only where it lies where programs lie, or is known by its full name. */
const throughScript = (run: Run, index: number): Run => {
  const path = run.words[index]?.value;
  if (path === undefined || !isKnown(commandName(path))) return run;
  const base = commandName(path);
  if (toolNamed(base) !== undefined && (base === "setup.py" || base === "manage.py")) return renamed(run, index, base);
  const name = base.replace(SCRIPT_ENDING, "");
  const isProgram =
    name === base || /(?:^|\/)(?:node_modules|bin|\.bin|vendor|scripts)\//.test(path) || base.endsWith(".phar");
  if (!isProgram || toolNamed(name) === undefined) return run;
  return renamed(run, index, name);
};
