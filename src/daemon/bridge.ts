/** Heavy calls of agents: prepared before approval, admitted after it, accounted for at their end. */
import { availableParallelism } from "node:os";
import { automaticCapMb } from "../admission/cap.js";
import { growthMb } from "../admission/admit.js";
import { poolLimits } from "../admission/pool.js";
import { classify, type Classification } from "../classify/classify.js";
import { diskFiles } from "../classify/scripts/files.js";
import { monotonicMs } from "../clock.js";
import { trackJob, type Tracking } from "../job/track.js";
import { lighten, type LightenedText } from "../lighten/lighten.js";
import { measureMemory } from "../memory.js";
import type { ModeCache } from "../modes/cache.js";
import { candidates } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import type { Native } from "../native.js";
import { shellText } from "../outcome/command-text.js";
import { describeWork } from "../outcome/next-step.js";
import { quote } from "../outcome/note.js";
import type { HeadroomReport } from "../outcome/report.js";
import { JobDiary } from "../run/diary.js";
import { recordedJobs, runTurn } from "../run/turn.js";
import { resolveSettings } from "../settings/auto.js";
import type { LoadedSettings } from "../settings/load.js";
import { Sessions } from "../sessions/sessions.js";
import { HeavyCall, type CallFacts } from "./call.js";
import { CallTable } from "./call-table.js";
import type { Caller } from "./connection.js";
import type { AdmitParams, EndParams, PrepareParams } from "./params.js";
import type { Profile } from "./profile.js";

export type Prepared = { heavy: false } | { heavy: true; kind: string; command: string; changes: string[] };

export type Admitted =
  | { heavy: false }
  | { heavy: true; admitted: false; message: string; headroom: HeadroomReport }
  | { heavy: true; admitted: true; job: string | null; cap_mb: number; queued_s: number };

export interface BridgeHost {
  native: Native;
  runtimeDir: string;
  modes: ModeCache;
  calls: CallTable;
  sessions: Sessions;
  /** The first call has begun to run, for this profile; or the last one is over. */
  onBusy: (profile: Profile, agentPid: number) => void;
  warn: (line: string) => void;
}

/** The host gives up on a call at its deadline; the answer must be there before. */
const DEADLINE_MARGIN_S = 10;
const MOST_PREPARED = 256;
/** Who waits hears so often that the daemon is there. */
const SIGN_OF_LIFE_MS = 5000;

/** A text that was rewritten: what it was, and what is told of it at the end of its call. */
interface Rewritten {
  original: string;
  changes: string[];
}

export class Bridge {
  readonly #host: BridgeHost;
  /** By the texts that came of them. */
  readonly #rewritten = new Map<string, Rewritten>();
  #requests = 0;
  #hasToldMode = false;

  constructor(host: BridgeHost) {
    this.#host = host;
  }

  async prepare({ command, cwd, env }: PrepareParams, profile: Profile): Promise<Prepared> {
    const loaded = await profile.settings();
    if (loaded.settings.mode === "off") return { heavy: false };
    const classified = this.#classify(command, cwd, loaded);
    if (!classified.heavy) return { heavy: false };
    const lightened = loaded.settings.lighten
      ? lighten(command, classified, {
          capMb: this.#expectedCapMb(loaded),
          cpus: availableParallelism(),
          environment: env,
        })
      : { text: command, changes: [] };
    if (loaded.settings.mode === "observe") {
      this.#observe(command, cwd, classified, profile, loaded, lightened);
      return { heavy: false };
    }
    this.#remember(command, lightened);
    return { heavy: true, kind: classified.kind ?? "custom", command: lightened.text, changes: lightened.changes };
  }

  async admit(params: AdmitParams, profile: Profile, caller: Caller): Promise<Admitted> {
    const loaded = await profile.settings();
    const { settings } = loaded;
    if (settings.mode !== "enforce") return { heavy: false };
    const isCode = params.tool === "execute_code";
    const classified = this.#classify(params.command, params.cwd, loaded);
    if (!isCode && !classified.heavy) return { heavy: false };
    const { native, runtimeDir, warn } = this.#host;
    const memory = measureMemory(native);
    const resolved = resolveSettings(settings, memory);
    const work = describeWork(classified);
    const rewritten = this.#rewritten.get(params.command);
    const command = isCode ? "execute_code" : shellText(rewritten?.original ?? params.command);
    const cwd = params.cwd ?? "/";
    const diary = new JobDiary(profile.environment, { command, kind: work.kind, cwd, classified });
    const learnedPeakMb = diary.learnedPeakMb();
    this.#requests += 1;
    let lastReason = "looking for room";
    const tell = (): void => caller.notify("waiting", { call_id: params.call_id, reason: lastReason });
    const signsOfLife = setInterval(tell, SIGN_OF_LIFE_MS);
    const turn = await runTurn({
      native,
      runtimeDir,
      resolved,
      queueTimeoutS: queueTimeoutS(settings.queue_timeout_s, params.deadline_s),
      request: {
        command,
        kind: work.kind,
        pid: process.pid,
        id: `${process.pid}-${this.#requests}`,
        ...(learnedPeakMb === undefined ? {} : { learnedPeakMb }),
      },
      isAlone: false,
      hasNoSlot: isCode,
      lostSlots: this.#host.calls.takenOver,
      signal: caller.signal,
      onWaiting: (reason) => {
        diary.write({ event: "queued", reason });
        lastReason = reason;
        tell();
      },
      warn,
    }).finally(() => clearInterval(signsOfLife));
    const queuedS = Math.round(turn.queuedMs / 1000);
    const swapMb = settings.swap_mb;
    if (!turn.admitted) {
      diary.write({ event: "refused", reason: turn.message, queued_s: queuedS });
      const note = `${quote(command)} was ${turn.message}.`;
      return { heavy: true, admitted: false, message: note, headroom: refusal(swapMb, queuedS, note) };
    }
    const isBoxed = params.backend === "local" && settings.isolate;
    let tracking: Tracking = { job: undefined, warnings: [] };
    try {
      // Who has gone since the last look will start nothing.
      caller.signal.throwIfAborted();
      if (isBoxed) tracking = this.#track(params, { command, kind: work.kind, cwd, memoryMb: turn.capMb, swapMb });
    } catch (error) {
      turn.place?.leave();
      throw error;
    }
    tracking.warnings.forEach(warn);
    const { job } = tracking;
    if (job !== undefined) turn.place?.started(job.id);
    const mode = job?.mode ?? "off";
    const lightened = rewritten?.changes ?? [];
    const facts: CallFacts = {
      job: job?.id ?? null,
      call_id: params.call_id,
      session_id: params.session_id,
      hermes_home: String(profile.environment["HERMES_HOME"]),
      command,
      work,
      cwd,
      cap_mb: turn.capMb,
      swap_cap_mb: swapMb,
      mode,
      queued_s: queuedS,
      lightened,
      learned_peak_mb: learnedPeakMb ?? null,
      background: false,
      process: null,
    };
    diary.write({
      event: "started",
      ...(job === undefined ? {} : { job: job.id }),
      mode,
      cap_mb: turn.capMb,
      ...(lightened.length > 0 ? { lightened } : {}),
      ...(queuedS > 0 ? { queued_s: queuedS } : {}),
    });
    const remarks = [turn.told, isBoxed ? this.#remarkOn(mode) : undefined].filter((part) => part !== undefined);
    const call = new HeavyCall({
      facts,
      place: turn.place,
      tracked: job,
      diary,
      measure: () => measureMemory(native),
      remark: remarks.length > 0 ? remarks.join(" ") : undefined,
    });
    this.#host.calls.add(call);
    this.#host.onBusy(profile, params.agent_pid);
    // The agent is gone: nobody will say how its command ended.
    caller.signal.addEventListener("abort", () => call.release(), { once: true });
    if (caller.signal.aborted) call.release();
    return { heavy: true, admitted: true, job: facts.job, cap_mb: turn.capMb, queued_s: queuedS };
  }

  async end(params: EndParams): Promise<{ headroom: HeadroomReport | null }> {
    const call = this.#host.calls.find(params.job, params.call_id);
    if (call === undefined) return { headroom: null };
    if (params.background) return { headroom: this.#host.calls.goOn(call, params.process ?? undefined) };
    const headroom = await call.end({
      exitCode: params.exit_code ?? undefined,
      timedOut: params.timed_out ?? undefined,
      interrupted: params.interrupted ?? undefined,
      outputTail: params.output_tail ?? undefined,
    });
    this.#host.calls.answered(call);
    return { headroom };
  }

  async notes(session: string, profile: Profile): Promise<{ notes: string[]; pending: number }> {
    const { sessions, native, calls } = this.#host;
    const notes = sessions.takeNotes(session);
    calls.keepNotes();
    const memory = measureMemory(native);
    const { reserve_mb } = resolveSettings((await profile.settings()).settings, memory);
    if (memory.available_mb < reserve_mb && sessions.mayAdvise(session, monotonicMs())) {
      notes.push(
        `Memory is tight on this machine: ${memory.available_mb} of ${memory.total_mb} MB are available. Prefer small steps and one worker, and do not start further background jobs.`,
      );
    }
    return { notes, pending: sessions.pendingJobs(session) };
  }

  closeSession(session: string): void {
    this.#host.sessions.close(session);
    this.#host.calls.keepNotes();
  }

  #classify(command: string, cwd: string | null | undefined, { patterns }: LoadedSettings): Classification {
    return classify(command, {
      ...(cwd === null || cwd === undefined ? {} : { cwd, files: diskFiles }),
      ...(patterns === undefined ? {} : { patterns }),
    });
  }

  #track(
    params: AdmitParams,
    job: { command: string; kind: string; cwd: string; memoryMb: number; swapMb: number },
  ): Tracking {
    const { native, runtimeDir, modes } = this.#host;
    const tracking = trackJob(native, candidates(modes.get(), undefined), {
      agentPid: params.agent_pid,
      texts: params.command === "" ? [] : [params.command],
      text: job.command,
      kind: job.kind,
      cwd: job.cwd,
      memoryMb: job.memoryMb,
      swapMb: job.swapMb,
      pool: poolLimits(measureMemory(native)),
      runtimeDir,
    });
    if (tracking.warnings.length > 0) modes.forget();
    return tracking;
  }

  /** What a job would get when those that run have ended: the text is rewritten before anybody waits. */
  #expectedCapMb({ settings }: LoadedSettings): number {
    const { native, runtimeDir } = this.#host;
    const memory = measureMemory(native);
    const jobs = recordedJobs(native, runtimeDir);
    const heldMb = jobs.reduce((sum, { nowMb }) => sum + nowMb, 0);
    const now = { ...memory, available_mb: memory.available_mb - growthMb(jobs) };
    const later = { ...memory, available_mb: memory.available_mb + heldMb };
    // With several at once each gets what the others leave; alone it waits for the others' end.
    const capMb =
      jobs.length === 0 ? automaticCapMb(memory) : Math.max(automaticCapMb(now), Math.floor(automaticCapMb(later) / 2));
    const { job_memory_max_mb: mostMb } = settings;
    return mostMb > 0 ? Math.min(capMb, mostMb) : capMb;
  }

  #observe(
    command: string,
    cwd: string | null | undefined,
    classified: Classification,
    profile: Profile,
    loaded: LoadedSettings,
    { changes }: LightenedText,
  ): void {
    const { kind } = describeWork(classified);
    const job = { command: shellText(command), kind, cwd: cwd ?? "/", classified };
    new JobDiary(profile.environment, job).write({
      event: "observe",
      cap_mb: this.#expectedCapMb(loaded),
      lightened: changes,
    });
  }

  #remember(original: string, { text, changes }: LightenedText): void {
    if (changes.length === 0) return;
    this.#rewritten.delete(text);
    this.#rewritten.set(text, { original, changes });
    if (this.#rewritten.size > MOST_PREPARED) this.#rewritten.delete([...this.#rewritten.keys()][0] ?? "");
  }

  /** Said once: it is the machine's, not the job's. */
  #remarkOn(mode: Mode): string | undefined {
    if (this.#hasToldMode || (mode !== "userspace" && mode !== "off")) return undefined;
    this.#hasToldMode = true;
    return mode === "off"
      ? "No memory cap could be put on this job. See: hermes-headroom selftest."
      : "The kernel holds no memory cap here; headroom watches the job itself. See: hermes-headroom selftest.";
  }
}

const queueTimeoutS = (settingS: number, deadlineS: number | null | undefined): number =>
  deadlineS === null || deadlineS === undefined
    ? settingS
    : Math.max(0, Math.min(settingS, deadlineS - DEADLINE_MARGIN_S));

const refusal = (swapMb: number, queuedS: number, note: string): HeadroomReport => ({
  memory_cap_mb: 0,
  swap_cap_mb: swapMb,
  isolated: false,
  mode: "off",
  ...(queuedS > 0 ? { queued_s: queuedS } : {}),
  oom_killed: false,
  note,
});
