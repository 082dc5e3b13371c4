/** What kind of work a command is, and the lighter way to do it: from the tool table. */
import type { Classification } from "../classify/classify.js";
import type { Kind } from "../tools/schema.js";

export interface Work {
  kind: Kind;
  /** What to try next, as an imperative sentence without its full stop. */
  nextStep: string;
}

/** Where the table has no advice for the tool itself. */
const STEPS: Record<Kind, string> = {
  install: "install fewer packages at a time, or prefer prebuilt ones to those that compile",
  test: "run one test file or one suite at a time, with a single worker",
  build: "build one target at a time, or a smaller part",
  compile: "build one target at a time with one job (-j1), or a smaller part",
  script: "run the steps of the script one by one, with a single worker each",
  container: "give the container its own memory limit and build one image at a time",
  media: "work on a smaller or shorter piece, with a single thread",
  ml: "use a smaller model, or a smaller batch",
  browser: "open one page at a time",
  agent: "run one agent at a time, on a smaller task",
  custom: "do it in smaller parts, or with fewer workers at once",
};

/** The last heavy part decides; what is not known to be heavy is `custom`. */
export const describeWork = ({ kind, runs }: Pick<Classification, "kind" | "runs">): Work => {
  const last = runs.at(-1);
  const behind = last?.script?.runs.at(-1);
  const nextStep = behind?.work.entry.next ?? last?.work.entry.next ?? STEPS[kind ?? "custom"];
  return { kind: kind ?? "custom", nextStep };
};
