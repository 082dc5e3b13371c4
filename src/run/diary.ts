/** What is kept about a job beyond its end: events, and its peak. */
import type { Classification } from "../classify/classify.js";
import { appendEvent, dataDirectory, type HeadroomEvent } from "../events/log.js";
import type { HeadroomReport } from "../outcome/report.js";
import { normaliseCommand, projectDirectory } from "../peaks/key.js";
import { PeakStore } from "../peaks/store.js";

export interface DiaryJob {
  /** Secrets masked. */
  command: string;
  kind: string;
  cwd: string;
  classified: Classification;
}

/** Never throws, and never stops a job: what went wrong is in `problems`. */
export class JobDiary {
  readonly problems: string[] = [];
  readonly #directory: string;
  readonly #job: DiaryJob;
  readonly #peaks: PeakStore;
  readonly #project: string;
  readonly #name: string;

  constructor(environment: Readonly<Record<string, string | undefined>>, job: DiaryJob) {
    this.#directory = dataDirectory(environment);
    this.#job = job;
    this.#peaks = new PeakStore(this.#directory);
    this.#project = projectDirectory(job.cwd);
    this.#name = normaliseCommand(job.classified);
  }

  /** The most that this command has needed here before, MiB. */
  learnedPeakMb(): number | undefined {
    return this.#name === "" ? undefined : this.#peaks.recall(this.#project, this.#name)?.peak_mb;
  }

  write(event: Omit<HeadroomEvent, "pid" | "command" | "kind">): void {
    const { command, kind } = this.#job;
    this.#note(appendEvent(this.#directory, { pid: process.pid, command, kind, ...event }));
  }

  close(report: HeadroomReport, exitCode: number | undefined, tookMs: number): void {
    const { peak_mb, oom_killed, killed_by, mode, memory_cap_mb } = report;
    const facts = {
      mode,
      cap_mb: memory_cap_mb,
      ...(exitCode === undefined ? {} : { exit_code: exitCode }),
      took_s: Math.round(tookMs / 100) / 10,
      ...(peak_mb === undefined ? {} : { peak_mb }),
      ...(killed_by === undefined ? {} : { killed_by }),
    };
    if (oom_killed) this.write({ event: "oom", ...facts });
    this.write({ event: "finished", ...facts });
    if (peak_mb === undefined || this.#name === "") return;
    this.#note(this.#peaks.remember(this.#project, this.#name, { peak_mb, killed: oom_killed, at: Date.now() }));
  }

  #note(problem: string | undefined): void {
    if (problem !== undefined && !this.problems.includes(problem)) this.problems.push(problem);
  }
}
