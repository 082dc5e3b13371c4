/**
 * The first look at a command: when nothing in it can be the name of a tool, it is light for certain and
 * nothing more is done. The Hermes plugin does the same in Python, from a generated copy of the words
 * (`scripts/generate-words.ts`), so that a light command never leaves its process.
 */
import { moduleNames, TOOLS } from "../tools/lookup.js";

/** What is in every name that the table knows by a pattern only. Cross compilers have `gcc` as a token. */
const FAMILY_PHRASES = ["create-", "/create"];
/** Python's tools come with its version behind. */
const VERSIONED = ["pip", "nosetests", "pytest", "coverage"];
/** One letter is in too many commands: what always stands beside it (`R CMD check`). */
const BESIDE_SHORT = ["cmd"];
/** Module names that are everyday words: `python -m build`. */
const EVERYDAY = new Set(["build", "robot", "invoke", "notebook", "green", "ward", "trial", "nose", "accelerate"]);

/** `python -mpip`: the modules that people write so. */
const GLUED_MODULES = ["pip", "pytest", "unittest", "build", "tox", "nox", "coverage"];

/** The flags without which the tool is light say more than its name does. */
const isTelling = (needs: string | undefined): needs is string =>
  needs !== undefined && needs.split(" ").every((flag) => /^--\w{4}/.test(flag));

const words = (): string[] => {
  const names = TOOLS.filter(({ needs }) => !isTelling(needs))
    .flatMap(({ names: all }) => all.split(" "))
    .filter((name) => name.length > 1);
  const modules = moduleNames().filter((name) => !EVERYDAY.has(name));
  const versioned = VERSIONED.flatMap((name) => [`${name}2`, `${name}3`]);
  return [
    ...new Set([...names, ...BESIDE_SHORT, ...modules, ...versioned].map((name) => name.toLowerCase())),
  ].toSorted();
};

/** Pieces of text that make a command worth a look although no word of it is a tool's name. */
const phrases = (): string[] => {
  const ofModules = [...EVERYDAY].map((name) => `-m ${name}`);
  const ofNeeds = TOOLS.flatMap(({ needs }) => (isTelling(needs) ? needs.split(" ") : []));
  const glued = GLUED_MODULES.map((name) => `-m${name}`);
  return [...new Set([...FAMILY_PHRASES, ...ofModules, ...glued, ...ofNeeds, "--run "])].toSorted();
};

export const HEAVY_WORDS: readonly string[] = words();
export const HEAVY_PHRASES: readonly string[] = phrases();

const wordSet = new Set(HEAVY_WORDS);
/** `gcc` of `x86_64-linux-gnu-gcc-13`. */
const PARTS = /[a-z0-9+]+/g;
/** `apt-get`, `setup.py`. */
const WHOLE = /[a-z0-9+._-]+/g;

/** False only when the text is light for certain (a user's own patterns aside). */
export const mayBeHeavy = (text: string): boolean => {
  const plain = text
    .replaceAll("\\\n", "")
    .replaceAll(/['"\\]/g, "")
    .toLowerCase();
  // `$'\x6dake'`: what it stands for is not looked at here.
  if (text.includes("$'")) return true;
  const has = (tokens: RegExp): boolean => (plain.match(tokens) ?? []).some((token) => wordSet.has(token));
  return has(PARTS) || has(WHOLE) || HEAVY_PHRASES.some((phrase) => plain.includes(phrase));
};
