/** The text of a drop-in. It carries its own checksum, so that a later edit by somebody is seen. */
import { createHash } from "node:crypto";
import type { UnitPlan } from "./policy.js";

/** `edited` was ours and was changed since; `foreign` never was. */
export type Ownership = "ours" | "edited" | "foreign";

export interface DropIn {
  ownership: Ownership;
  /** The lines `KEY=VALUE` in it, by key. */
  values: Readonly<Record<string, string>>;
  /** For whom lingering was switched on with it. */
  linger: string | null;
}

const FIRST_LINE = "# Written by `hermes-headroom harden`; `hermes-headroom harden --undo` takes it away.";
const SECOND_LINE = "# Whoever changes it has it: it is then left alone. Own settings: systemctl edit UNIT.";
const CHECKSUM = "# checksum ";
const LINGER = "# lingering was switched on with it: ";
const COMMENT_WIDTH = 100;

export const renderDropIn = ({ section, settings }: UnitPlan, linger: string | null): string => {
  const body = settings.flatMap(({ key, value, reason }) => [
    "",
    ...wrapComment(reason).map((line) => `# ${line}`),
    `${key}=${value}`,
  ]);
  const head = [FIRST_LINE, SECOND_LINE];
  const rest = [...(linger === null ? [] : [LINGER + linger]), "", `[${section}]`, ...body.slice(1), ""];
  return [...head, CHECKSUM + checksum([...head, ...rest].join("\n")), ...rest].join("\n");
};

export const readDropIn = (text: string): DropIn => {
  const lines = text.split("\n");
  const given = lines.find((line) => line.startsWith(CHECKSUM));
  const values = lines.flatMap((line) => {
    const equals = line.indexOf("=");
    return /^[A-Z]/.test(line) && equals > 0 ? [[line.slice(0, equals), line.slice(equals + 1)]] : [];
  });
  const linger = lines.find((line) => line.startsWith(LINGER))?.slice(LINGER.length) ?? null;
  const rest = lines.filter((line) => line !== given).join("\n");
  const isWhole = given !== undefined && given.slice(CHECKSUM.length) === checksum(rest);
  const ownership = isWhole ? "ours" : lines[0] === FIRST_LINE ? "edited" : "foreign";
  return { ownership, values: Object.fromEntries(values) as Record<string, string>, linger };
};

const checksum = (text: string): string => createHash("sha256").update(text).digest("hex");

const wrapComment = (text: string): string[] => {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > COMMENT_WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
};
