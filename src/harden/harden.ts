/** `harden` from end to end: look, propose, and on request install or take away. */
import { applyPlan, type Applied } from "./apply.js";
import type { Facts } from "./facts.js";
import { gatherFacts, type Host } from "./gather.js";
import { planHardening, type HardenPlan } from "./policy.js";
import { undoHardening } from "./undo.js";

/** What `harden --json` prints. */
export interface HardenResult extends HardenPlan {
  action: "propose" | "write" | "undo";
  changes: Applied["changes"];
  restart: Applied["restart"];
}

export const harden = async (host: Host, action: HardenResult["action"]): Promise<HardenResult> => {
  const facts = await gatherFacts(host);
  const applied = await act(facts, host, action);
  // What is said of a unit is said of it as it is now.
  const now = applied.changes.length > 0 ? await gatherFacts(host) : facts;
  return { action, ...planHardening(now), ...applied };
};

const act = (facts: Facts, { run }: Host, action: HardenResult["action"]): Promise<Applied> => {
  if (action === "write") return applyPlan(planHardening(facts), facts, run);
  if (action === "undo") return undoHardening(facts, run);
  return Promise.resolve({ changes: [], restart: [] });
};
