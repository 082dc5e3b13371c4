/** Who gets how many lines of a terminal. */

export type Section = "title" | "memory" | "pressure" | "problem" | "jobs" | "waiting" | "processes" | "gaps" | "hints";

/** `section` would have so many lines in all; whatever of them there is room for, or all or nothing. */
export interface Claim {
  section: Section;
  lines: number;
  /** Fewer are of no use. Default: any number is welcome. */
  least?: number;
}

/** Claims are served in their order. */
export const shareOut = (claims: readonly Claim[], height: number): Record<Section, number> => {
  const granted: Record<Section, number> = {
    title: 0,
    memory: 0,
    pressure: 0,
    problem: 0,
    jobs: 0,
    waiting: 0,
    processes: 0,
    gaps: 0,
    hints: 0,
  };
  let left = Math.max(0, height);
  for (const { section, lines, least = 1 } of claims) {
    const possible = Math.min(lines, granted[section] + left);
    if (possible <= granted[section] || possible < least) continue;
    left -= possible - granted[section];
    granted[section] = possible;
  }
  return granted;
};
