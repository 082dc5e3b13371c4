/** Literal text that reaches a shell's standard input. */
import type { Command, Redirection, Word } from "unbash";
import { commandName } from "./names.js";
import { UNKNOWN } from "./word.js";

type ValueOf = (word: Word) => string;

/** What here-documents and here-strings give to standard input; the last one wins. */
export const shellInput = (redirects: readonly Redirection[], valueOf: ValueOf): string | undefined => {
  let input: string | undefined;
  for (const redirect of redirects) {
    if (
      redirect.descriptor !== undefined &&
      redirect.descriptor.type === "FileDescriptor" &&
      redirect.descriptor.value !== 0
    )
      continue;
    if (redirect.type === "HereString") input = redirect.target === undefined ? undefined : valueOf(redirect.target);
    else if (redirect.type === "HereDoc") input = hereDocText(redirect, valueOf);
    else if (redirect.operator === "<") input = undefined;
  }
  return input;
};

const hereDocText = (
  { body, operator, delimiter }: Extract<Redirection, { type: "HereDoc" }>,
  valueOf: ValueOf,
): string => {
  const raw = operator === "<<-" ? body.text.replaceAll(/^\t+/gm, "") : body.text;
  if (delimiter?.quoted || body.parts === undefined) return raw;
  // Expansions are done by the outer shell; what they give is not known here.
  const value = body.parts
    .map((part) =>
      part.type === "Literal"
        ? part.value
        : valueOf({ type: "Word", text: part.text, value: UNKNOWN, pos: part.pos, end: part.end, parts: [part] }),
    )
    .join("");
  return operator === "<<-" ? value.replaceAll(/^\t+/gm, "") : value;
};

const unescape = (text: string): string =>
  text.replaceAll(/\\([nt\\])/g, (_all, letter: string) => (letter === "n" ? "\n" : letter === "t" ? "\t" : "\\"));

/** What `echo`, `printf` or `cat` of a literal prints; `undefined` when that is not plain. */
export const literalOutput = (node: Command, valueOf: ValueOf, fed: string | undefined): string | undefined => {
  if (node.name === undefined) return undefined;
  const words = node.args.map((argument) => (argument.type === "Word" ? valueOf(argument) : argument.text));
  switch (commandName(valueOf(node.name))) {
    case "echo": {
      const flags = words.findIndex((word) => !/^-[neE]+$/.test(word));
      const text = words.slice(flags < 0 ? words.length : flags).join(" ");
      return words.slice(0, Math.max(flags, 0)).some((word) => word.includes("e")) ? unescape(text) : text;
    }
    case "printf": {
      const [format = "", ...values] = words[0] === "--" ? words.slice(1) : words;
      const pattern = unescape(format);
      if (!pattern.includes("%")) return pattern;
      if (!/^[^%]*%[sb][^%]*$/.test(pattern)) return undefined;
      return values.map((value) => pattern.replace(/%[sb]/, () => value)).join("");
    }
    case "cat":
    case "tee":
      if (words.some((word) => !word.startsWith("-") && commandName(valueOf(node.name as Word)) === "cat"))
        return undefined;
      return shellInput(node.redirects, valueOf) ?? fed;
    default:
      return undefined;
  }
};
