/** One heavy call of an agent, from its admission to its account. */
import { availableParallelism } from "node:os";
import { automaticCapMb } from "../admission/cap.js";
import type { Held } from "../admission/turn.js";
import type { EndedEvent } from "../job/events.js";
import type { TrackedJob } from "../job/track.js";
import { heapMb } from "../lighten/limits.js";
import type { MemorySnapshot } from "../memory.js";
import type { Mode } from "../modes/mode.js";
import { isMode } from "../modes/mode.js";
import type { Work } from "../outcome/next-step.js";
import { buildNote } from "../outcome/note.js";
import { buildReport, type HeadroomReport } from "../outcome/report.js";
import type { JobDiary } from "../run/diary.js";

/** What is kept about a call for a daemon that takes over. Sizes in MiB. */
export interface CallFacts {
  job: string | null;
  call_id: string;
  session_id: string;
  hermes_home: string;
  /** As people read it, secrets masked. */
  command: string;
  work: Work;
  cwd: string;
  cap_mb: number;
  swap_cap_mb: number;
  mode: Mode;
  queued_s: number;
  lightened: string[];
  learned_peak_mb: number | null;
  /** It runs on behind the chat. */
  background: boolean;
  /** The name by which the agent's model knows it. */
  process: string | null;
}

/** How the agent saw the command end. */
export interface Outcome {
  exitCode?: number | undefined;
  timedOut?: boolean | undefined;
  interrupted?: boolean | undefined;
  /** The last of what it printed. */
  outputTail?: string | undefined;
}

export interface CallParts {
  facts: CallFacts;
  place: Held | undefined;
  tracked: TrackedJob | undefined;
  diary: JobDiary;
  measure: () => MemorySnapshot;
  /** One sentence for this job alone: a degraded mode, say. */
  remark: string | undefined;
}

/** An account that takes longer than that is of a job that runs on. */
const ACCOUNT_PATIENCE_MS = 3000;

const NOTHING_ENDED: EndedEvent = {
  ending: null,
  peak: null,
  cap_hit: false,
  oom_kills: 0,
  cap_kills: 0,
  victims: [],
  left_running: [],
  escaped: 0,
  ended_by_signal: null,
  pool_stopped: false,
  took_ms: 0,
};

export class HeavyCall {
  readonly facts: CallFacts;
  /** Settles when the job has ended, or the call without a box is over. */
  readonly over: Promise<void>;
  readonly #parts: CallParts;
  #ended: EndedEvent | undefined;
  #isOver = false;
  #isAccounted = false;
  #letGo: () => void = () => {};

  constructor(parts: CallParts) {
    this.#parts = parts;
    this.facts = parts.facts;
    const { tracked, place } = parts;
    // Without a box nothing tells the end but the agent.
    const ended = tracked?.ended ?? new Promise<undefined>((resolve) => (this.#letGo = () => resolve(undefined)));
    this.over = this.#stay(ended, place);
  }

  async #stay(ended: Promise<EndedEvent | undefined>, place: Held | undefined): Promise<void> {
    this.#ended = (await ended) ?? NOTHING_ENDED;
    this.#isOver = true;
    place?.leave();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The shell has been started, or never will be. */
  finish(): void {
    this.#parts.tracked?.finish();
  }

  /** The agent is gone, or has said everything: a call without a box ends here. */
  release(): void {
    this.finish();
    this.#letGo();
  }

  /** The command goes on behind the chat. What is known until now. */
  goOn(process: string | undefined): HeadroomReport {
    this.facts.background = true;
    this.facts.process = process ?? null;
    this.finish();
    return this.#report(undefined, {});
  }

  /** The command has ended, as far as the agent knows. */
  async end(outcome: Outcome): Promise<HeadroomReport> {
    this.release();
    const patience = new AbortController();
    const tooLong = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ACCOUNT_PATIENCE_MS);
      patience.signal.addEventListener("abort", () => clearTimeout(timer));
    });
    await Promise.race([this.over, tooLong]);
    patience.abort();
    if (this.#ended === undefined) return this.goOn(undefined);
    return this.#account(this.#ended, outcome);
  }

  /** The account of a job that has ended behind the chat; what its chat should be told, if anything. */
  closeBackground(): string | undefined {
    const { note } = this.#account(this.#ended ?? NOTHING_ENDED, {});
    if (note === undefined) return undefined;
    const { process } = this.facts;
    return `Background job${process === null ? "" : ` ${process}`}: ${note}`;
  }

  #account(ended: EndedEvent, outcome: Outcome): HeadroomReport {
    const report = this.#report(ended, outcome);
    if (!this.#isAccounted) {
      this.#isAccounted = true;
      this.#parts.diary.close(report, outcome.exitCode, ended.took_ms);
    }
    return report;
  }

  #report(happened: EndedEvent | undefined, outcome: Outcome): HeadroomReport {
    const { facts } = this;
    const { measure, remark } = this.#parts;
    const { exitCode } = outcome;
    const ended: EndedEvent = {
      ...(happened ?? NOTHING_ENDED),
      ...(exitCode === undefined ? {} : { ending: { exit_code: exitCode } }),
    };
    const report = buildReport({ memoryMb: facts.cap_mb, swapMb: facts.swap_cap_mb, mode: facts.mode }, ended);
    if (facts.queued_s > 0) report.queued_s = facts.queued_s;
    if (facts.lightened.length > 0) report.lightened = facts.lightened;
    if (report.killed_by === undefined && outcome.timedOut) report.killed_by = "timeout";
    if (report.killed_by === undefined && outcome.interrupted) report.killed_by = "user";
    const heap = heapMb({ capMb: facts.cap_mb, cpus: availableParallelism() });
    const note = buildNote(report, ended, {
      text: facts.command,
      work: facts.work,
      possibleCapMb: automaticCapMb(measure()),
      isOwnRun: false,
      ...(heap === undefined || facts.lightened.length === 0 ? {} : { heapMb: heap }),
      ...(facts.learned_peak_mb === null ? {} : { learnedPeakMb: facts.learned_peak_mb }),
      ...(outcome.outputTail === undefined ? {} : { outputTail: outcome.outputTail }),
      ...(outcome.timedOut ? { timedOutAfterS: Math.round(ended.took_ms / 1000) } : {}),
    });
    const told = [remark, note].filter((part) => part !== undefined).join(" ");
    if (told !== "") report.note = told;
    return report;
  }
}

/** It is a part of file names. */
const JOB_ID = /^\d+-\d+-\d+$/;

/** Reads facts that another daemon has kept; `undefined` for what are none. */
export const readFacts = (value: unknown): CallFacts | undefined => {
  if (typeof value !== "object" || value === null) return undefined;
  const facts = value as CallFacts;
  const texts = [facts.job, facts.call_id, facts.session_id, facts.hermes_home, facts.command, facts.cwd];
  const isWhole =
    JOB_ID.test(facts.job ?? "") &&
    texts.every((text) => typeof text === "string") &&
    isMode(facts.mode) &&
    typeof facts.cap_mb === "number" &&
    typeof facts.swap_cap_mb === "number" &&
    typeof facts.work?.nextStep === "string" &&
    Array.isArray(facts.lightened);
  return isWhole ? facts : undefined;
};
