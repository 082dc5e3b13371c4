/** Which variables of an environment lightening looks at, so that a caller need not give all of it. */
import { TOOLS } from "../tools/lookup.js";
import type { Entry, Verdict } from "../tools/schema.js";
import { NODE_OPTIONS } from "./heap.js";

const ofEntry = ({ workers, variables, subcommands, bare, other }: Entry): string[] => [
  ...(workers?.allVariable === undefined ? [] : [workers.allVariable]),
  ...(workers?.elsewhere?.variables?.split(" ") ?? []),
  ...(variables ?? []).map(({ name }) => name),
  ...[...Object.values(subcommands ?? {}), bare, other].flatMap(ofVerdict),
];

const ofVerdict = (verdict: Verdict | Entry | undefined): string[] =>
  typeof verdict === "object" ? ofEntry(verdict) : [];

/** Their names, sorted. */
export const VARIABLES_LOOKED_AT: readonly string[] = [
  ...new Set([NODE_OPTIONS, ...TOOLS.flatMap((tool) => ofEntry(tool))]),
].toSorted();
