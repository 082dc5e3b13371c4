/**
 * Enables and disables the plugin in the text of Hermes' config.yaml. Only the lines in question are touched:
 * the parser tells where they are, and what comes out is parsed again and compared. Pure. Nothing of the text is
 * ever part of a message, for keys and tokens stand in it.
 */
import { isDeepStrictEqual } from "node:util";
import { isMap, isScalar, isSeq, parseAllDocuments, type Document, type Pair, type YAMLMap, type YAMLSeq } from "yaml";

export const PLUGIN_NAME = "headroom";

export type ConfigEdit =
  | { state: "changed"; text: string }
  | { state: "already" }
  /** `plugins.disabled` has it: somebody's choice. */
  | { state: "disabled" }
  | { state: "problem"; problem: string };

/** What is put at the end of a file that has no `plugins`. */
export const PLUGINS_BLOCK: string = `plugins:\n  enabled:\n    - ${PLUGIN_NAME}\n`;

const problem = (text: string): ConfigEdit => ({ state: "problem", problem: text });

export const enablePlugin = (text: string): ConfigEdit => {
  const parsed = parseConfig(text);
  if ("problem" in parsed) return problem(parsed.problem);
  const plugins = pairOf(parsed.root, "plugins");
  const map = isMap(plugins?.value) ? plugins.value : null;
  if (namesIn(pairOf(map, "disabled")?.value).includes(PLUGIN_NAME)) return { state: "disabled" };
  const enabled = pairOf(map, "enabled");
  if (namesIn(enabled?.value).includes(PLUGIN_NAME)) return { state: "already" };
  const edit = insertion(text, plugins, map, enabled);
  if (edit === undefined) return problem(UNSAFE);
  return verified(text, spliced(text, [edit]), (names) => [...names, PLUGIN_NAME]);
};

export const disablePlugin = (text: string): ConfigEdit => {
  const entry = enabledEntry(text);
  if ("problem" in entry) return problem(entry.problem);
  if (!namesIn(entry.enabled?.value).includes(PLUGIN_NAME)) return { state: "already" };
  // What enabling had put at the end goes as a whole.
  const start = text.length - PLUGINS_BLOCK.length;
  if (text.endsWith(PLUGINS_BLOCK) && (start === 0 || text[start - 1] === "\n")) {
    return { state: "changed", text: text.slice(0, start) };
  }
  let result = text;
  // One at a time, should it be there twice.
  for (let now: EnabledEntry = entry; !("problem" in now) && namesIn(now.enabled?.value).includes(PLUGIN_NAME);) {
    const edits = removal(result, now.enabled);
    if (edits === undefined) return problem(UNSAFE);
    result = spliced(result, edits);
    now = enabledEntry(result);
  }
  return verified(text, result, (names) => names.filter((name) => name !== PLUGIN_NAME));
};

const UNSAFE = "plugins.enabled is written in a way that cannot be changed safely";

type EnabledEntry = { enabled: Pair | undefined } | { problem: string };

const enabledEntry = (text: string): EnabledEntry => {
  const parsed = parseConfig(text);
  if ("problem" in parsed) return parsed;
  return { enabled: pairOf(pairOf(parsed.root, "plugins")?.value, "enabled") };
};

const OPTIONS = { prettyErrors: false, logLevel: "silent", uniqueKeys: true } as const;
const MOST_ALIASES = { maxAliasCount: 100 };

const parseConfig = (text: string): { document: Document | undefined; root: YAMLMap | null } | { problem: string } => {
  const parsed = parseAllDocuments(text, OPTIONS);
  const documents: Document[] = Array.isArray(parsed) ? (parsed as Document[]) : [];
  if (documents.length > 1) return { problem: "it holds more than one document" };
  const [document] = documents;
  const [error] = document?.errors ?? [];
  if (error !== undefined) {
    const line = text.slice(0, error.pos[0]).split("\n").length;
    return { problem: `it is no valid YAML (line ${line}: ${error.code})` };
  }
  const root = document?.contents ?? null;
  if (root === null || (isScalar(root) && root.value === null)) return { document, root: null };
  return isMap(root) ? { document, root } : { problem: "it is no mapping" };
};

const pairOf = (node: unknown, key: string): Pair | undefined =>
  isMap(node) ? (node.items as Pair[]).find((pair) => isScalar(pair.key) && pair.key.value === key) : undefined;

const namesIn = (node: unknown): unknown[] =>
  isSeq(node) ? node.items.map((item) => (isScalar(item) ? item.value : undefined)) : [];

/** `text` instead of what stands from `start` to `end`, UTF-16 offsets. */
interface Edit {
  start: number;
  end: number;
  text: string;
}

const spliced = (text: string, edits: readonly Edit[]): string =>
  edits
    .toSorted((a, b) => b.start - a.start)
    .reduce((result, edit) => result.slice(0, edit.start) + edit.text + result.slice(edit.end), text);

const insertion = (
  text: string,
  plugins: Pair | undefined,
  map: YAMLMap | null,
  enabled: Pair | undefined,
): Edit | undefined => {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const addLine = (after: number, line: string): Edit => {
    const end = text.indexOf("\n", after);
    return end < 0
      ? { start: text.length, end: text.length, text: newline + line + newline }
      : { start: end + 1, end: end + 1, text: line + newline };
  };
  if (plugins === undefined) {
    const gap = text === "" || text.endsWith("\n") ? "" : newline;
    return { start: text.length, end: text.length, text: gap + PLUGINS_BLOCK.replaceAll("\n", newline) };
  }
  if (enabled !== undefined) {
    const { value } = enabled;
    if (isSeq(value)) return addItem(text, value, addLine);
    const indent = indentOf(text, enabled);
    return isEmptyValue(value) && indent !== undefined
      ? addLine(endOf(enabled.key), `${indent}  - ${PLUGIN_NAME}`)
      : undefined;
  }
  if (map !== null) {
    const [first] = map.items as Pair[];
    const start = rangeOf(map)?.[0];
    if (map.flow && start !== undefined) {
      const rest = first === undefined ? "" : ", ";
      return { start: start + 1, end: start + 1, text: `enabled: [${PLUGIN_NAME}]${rest}` };
    }
    const indent = first === undefined ? undefined : indentOf(text, first);
    if (first === undefined || indent === undefined) return undefined;
    const at = lineStart(text, startOf(first.key));
    return { start: at, end: at, text: `${indent}enabled:${newline}${indent}  - ${PLUGIN_NAME}${newline}` };
  }
  const indent = indentOf(text, plugins);
  if (!isEmptyValue(plugins.value) || indent === undefined) return undefined;
  return addLine(endOf(plugins.key), `${indent}  enabled:${newline}${indent}    - ${PLUGIN_NAME}`);
};

const addItem = (text: string, list: YAMLSeq, addLine: (after: number, line: string) => Edit): Edit | undefined => {
  const last = rangeOf(list.items.at(-1));
  const range = rangeOf(list);
  if (range === undefined) return undefined;
  if (list.flow) {
    return last === undefined
      ? { start: range[0] + 1, end: range[0] + 1, text: PLUGIN_NAME }
      : { start: last[1], end: last[1], text: `, ${PLUGIN_NAME}` };
  }
  const dash = last === undefined ? undefined : dashBefore(text, last[0]);
  return last === undefined || dash === undefined ? undefined : addLine(last[1], dash + PLUGIN_NAME);
};

/** Takes the last one of ours out. */
const removal = (text: string, enabled: Pair | undefined): Edit[] | undefined => {
  const list = enabled?.value;
  if (!isSeq(list)) return undefined;
  const index = namesIn(list).lastIndexOf(PLUGIN_NAME);
  const [before, range, next] = [index - 1, index, index + 1].map((at) => rangeOf(list.items[at]));
  if (range === undefined) return undefined;
  if (list.flow) {
    return next === undefined
      ? [{ start: before?.[1] ?? range[0], end: range[1], text: "" }]
      : [{ start: range[0], end: next[0], text: "" }];
  }
  if (dashBefore(text, range[0]) === undefined) return undefined;
  const end = text.indexOf("\n", range[1]);
  const line: Edit = { start: lineStart(text, range[0]), end: end < 0 ? text.length : end + 1, text: "" };
  if (list.items.length > 1) return [line];
  const colon = text.indexOf(":", endOf(enabled?.key)) + 1;
  return [line, { start: colon, end: colon, text: " []" }];
};

/** The list must be as meant, and everything else as it was. */
const verified = (before: string, text: string, meant: (names: unknown[]) => unknown[]): ConfigEdit => {
  const unsafe = problem(UNSAFE);
  try {
    const wanted = plain(before);
    const found = plain(text);
    const plugins = (wanted["plugins"] ?? {}) as Record<string, unknown>;
    const names = Array.isArray(plugins["enabled"]) ? (plugins["enabled"] as unknown[]) : [];
    const expected = { ...wanted, plugins: { ...plugins, enabled: meant(names) } };
    return isDeepStrictEqual(found, expected) ? { state: "changed", text } : unsafe;
  } catch {
    return unsafe;
  }
};

const plain = (text: string): Record<string, unknown> => {
  const parsed = parseConfig(text);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return (parsed.document?.toJS(MOST_ALIASES) ?? {}) as Record<string, unknown>;
};

const rangeOf = (node: unknown): readonly [number, number, number] | undefined =>
  (node as { range?: readonly [number, number, number] | null } | null | undefined)?.range ?? undefined;
const startOf = (node: unknown): number => rangeOf(node)?.[0] ?? -1;
const endOf = (node: unknown): number => rangeOf(node)?.[1] ?? -1;

const isEmptyValue = (value: unknown): boolean =>
  value === null || (isScalar(value) && value.value === null && (value.source ?? "") === "");

const lineStart = (text: string, offset: number): number => text.lastIndexOf("\n", offset - 1) + 1;

/** What stands before a key on its line, where that is nothing but room. */
const indentOf = (text: string, { key }: Pair): string | undefined => {
  const before = text.slice(lineStart(text, startOf(key)), startOf(key));
  return /^ *$/.test(before) ? before : undefined;
};

/** Room, dash and room before an item that begins its line. */
const dashBefore = (text: string, offset: number): string | undefined => {
  const before = text.slice(lineStart(text, offset), offset);
  return /^ *- +$/.test(before) ? before : undefined;
};
