/** Whom the kernel should prefer when the whole machine is out of memory: the job, not its agent. */

const USUAL = 900;
const HIGHEST = 1000;

/**
 * The `oom_score_adj` (−1000 to 1000) for a job of an agent with this one: 900, or halfway to the top
 * when the agent itself is above 400. Not 1000 for everything: the kernel would then take `grep` first.
 */
export const jobOomScoreAdj = (agentScore: number): number =>
  agentScore <= 400 ? USUAL : Math.max(USUAL, Math.ceil((agentScore + HIGHEST) / 2));
