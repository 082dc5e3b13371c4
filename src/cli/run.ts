/** `hermes-headroom run`: one job from the command line. */
import { availableParallelism } from "node:os";
import { poolLimits } from "../admission/pool.js";
import { automaticCapMb } from "../admission/cap.js";
import { classify, type Classification } from "../classify/classify.js";
import { diskFiles } from "../classify/scripts/files.js";
import { HeadroomError } from "../errors.js";
import { adoptJobs } from "../job/adopt.js";
import { startJob, type FailedStart, type JobRequest } from "../job/start.js";
import { runUnboxed } from "../job/unboxed.js";
import { heapMb } from "../lighten/limits.js";
import { lightenWords, type LightenedWords } from "../lighten/words.js";
import { measureMemory } from "../memory.js";
import { candidates, faults, probeModes } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import { loadNative, nativeStatus, type Native } from "../native.js";
import { commandText } from "../outcome/command-text.js";
import { describeWork } from "../outcome/next-step.js";
import { buildNote, quote } from "../outcome/note.js";
import { buildReport, exitCodeOf, type HeadroomReport } from "../outcome/report.js";
import { JobDiary } from "../run/diary.js";
import { runTurn } from "../run/turn.js";
import { watchRun } from "../run/watch.js";
import { resolveSettings } from "../settings/auto.js";
import { loadSettings } from "../settings/load.js";
import { quoteWords } from "../shell/quote.js";
import { ReportFile } from "./report-file.js";
import { formatMb, formatSeconds, printError, stderrPaint } from "./terminal.js";

export interface RunOptions {
  memory?: number;
  swap?: number;
  mode?: Mode;
  report?: string;
  /** False with `--no-queue`. */
  queue?: boolean;
  /** Light commands are run as if headroom were not there. */
  auto?: boolean;
  verbose?: boolean;
  json?: boolean;
  set?: string[];
}

const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
const REFUSED = 75;

const PAUSED = "paused by the watchdog: memory is short. It goes on when an older job has ended or memory is free.";
const RESUMED = "goes on: there is room again.";

/** Runs the command and answers the exit code to end with. */
export const runCommand = async (words: string[], options: RunOptions): Promise<number> => {
  const reportFile = options.report === undefined ? undefined : ReportFile.prepare(options.report);
  const native = loadNative();
  if (!native) return runWithoutAddon(words, options, reportFile);
  checkWorkingDirectory();
  const { settings, patterns, problems } = await loadSettings({ environment: process.env, set: options.set ?? [] });
  if (settings.mode === "off" && options.mode === undefined) return runLikeThis(words, options, reportFile);
  problems.forEach(warn);

  const cwd = process.cwd();
  const source = quoteWords(words);
  const classified = classify(source, { cwd, files: diskFiles, ...(patterns === undefined ? {} : { patterns }) });
  if (options.auto && !classified.heavy) return runLikeThis(words, options, reportFile);

  const work = describeWork(classified);
  const text = commandText(words);
  const diary = new JobDiary(process.env, { command: text, kind: work.kind, cwd, classified });
  const memory = measureMemory(native);
  const resolved = resolveSettings(settings, memory);
  const askedMb = options.memory;
  const learnedPeakMb = diary.learnedPeakMb();
  const swapMb = options.swap ?? settings.swap_mb;
  const isInsideJob = process.env["HEADROOM_JOB_ID"] !== undefined;
  if (settings.mode === "observe") {
    const capMb = askedMb ?? automaticCapMb(memory);
    const would = settings.lighten ? lightened(native, words, source, classified, capMb) : undefined;
    diary.write({ event: "observe", cap_mb: capMb, ...(would === undefined ? {} : { lightened: would.changes }) });
    diary.problems.forEach(warn);
    const { path } = native.runtimeDirectory();
    const guard = watchRun({
      native,
      runtimeDir: path,
      resolved,
      environment: process.env,
      observe: true,
      isInsideJob,
      warn,
    });
    const code = await runLikeThis(words, options, reportFile);
    await guard.stop();
    return code;
  }

  const probed = probeModes(native);
  const modes = candidates(probed, options.mode ?? (settings.isolate ? undefined : "off"));
  if (options.mode === undefined) faults(probed).forEach(warn);
  const { path: runtimeDir, problem } = native.runtimeDirectory();
  native.collectOrphans();
  if (runtimeDir === null) warn(`jobs are not on record, and do not take turns: ${problem}`);
  else adoptJobs(native, runtimeDir, modes).forEach(warn);

  let isWaiting = false;
  const turn = await runTurn({
    native,
    runtimeDir,
    resolved,
    queueTimeoutS: settings.queue_timeout_s,
    request: {
      command: text,
      kind: work.kind,
      pid: process.pid,
      id: String(process.pid),
      ...(askedMb === undefined ? {} : { askedMb }),
      ...(learnedPeakMb === undefined ? {} : { learnedPeakMb }),
    },
    isAlone: options.queue === false || isInsideJob,
    onWaiting: (reason) => {
      if (!isWaiting) diary.write({ event: "queued", reason });
      isWaiting = true;
      if (!options.json) say(reason);
    },
    warn,
  });
  const queuedS = Math.round(turn.queuedMs / 1000);
  if (!turn.admitted) {
    diary.write({ event: "refused", reason: turn.message, queued_s: queuedS });
    diary.problems.forEach(warn);
    return refuse(turn.message, text, queuedS, swapMb, options, reportFile);
  }
  if (turn.told !== undefined) warn(turn.told);
  // From here on a signal is kept for the job instead of ending this process, so that no box is left behind.
  const signals = native.SignalPassing.install();
  const memoryMb = turn.capMb;
  const made = settings.lighten ? lightened(native, words, source, classified, memoryMb) : undefined;
  const changes = made?.changes ?? [];
  if (!options.json) changes.forEach(say);
  const request: JobRequest = {
    argv:
      made === undefined || changes.length === 0
        ? rawWords(native, words)
        : made.words.map((word) => Buffer.from(word)),
    variables: made?.variables ?? [],
    text,
    kind: work.kind,
    memoryMb,
    swapMb,
    pool: poolLimits(memory),
    stdio: ["inherit", "inherit", "inherit"],
    runtimeDir,
    collectsOrphans: true,
    signals,
    onEvent: (event) => {
      if (event.event === "paused" && !options.json) say(event.paused ? PAUSED : RESUMED);
    },
  };
  const guard = watchRun({ native, runtimeDir, resolved, environment: process.env, observe: false, isInsideJob, warn });
  const job = startJob(native, modes, request);
  job.warnings.forEach(warn);
  if (!job.started) {
    await guard.stop();
    return explainFailedStart(job);
  }
  turn.place?.started(job.id);
  diary.write({
    event: "started",
    job: job.id,
    mode: job.mode,
    cap_mb: memoryMb,
    ...(changes.length > 0 ? { lightened: changes } : {}),
    ...(queuedS > 0 ? { queued_s: queuedS } : {}),
  });

  const ended = await job.ended;
  turn.place?.leave();
  await guard.stop();
  if (!ended) throw new HeadroomError("E_NATIVE_CALL", "the job's supervision ended without a result");
  const report = buildReport({ memoryMb, swapMb, mode: job.mode }, ended);
  if (queuedS > 0) report.queued_s = queuedS;
  if (changes.length > 0) report.lightened = changes;
  const heap = changes.length > 0 ? heapMb({ capMb: memoryMb, cpus: availableParallelism() }) : undefined;
  const note = buildNote(report, ended, {
    text,
    work,
    possibleCapMb: automaticCapMb(measureMemory(native)),
    ...(heap === undefined ? {} : { heapMb: heap }),
    ...(learnedPeakMb === undefined ? {} : { learnedPeakMb }),
  });
  if (note !== undefined) report.note = note;
  diary.close(report, exitCodeOf(ended), ended.took_ms);
  const unwritten = reportFile?.write(report);
  if (unwritten) warn(unwritten.message);
  diary.problems.forEach(warn);
  tell(report, ended.took_ms, options);
  return exitCodeOf(ended);
};

/** The lighter words; `undefined` where the words are no UTF-8 and cannot be read as a text. */
const lightened = (
  native: Native,
  words: string[],
  source: string,
  classified: Classification,
  capMb: number,
): LightenedWords | undefined => {
  const isText = rawWords(native, words).every(
    (word, index) => word.toString() === words[index] && !words[index].includes("\uFFFD"),
  );
  if (!isText) return undefined;
  return lightenWords(words, source, classified, { capMb, cpus: availableParallelism(), environment: process.env });
};

const say = (line: string): void => printError(`${stderrPaint()("dim", "headroom:")} ${line}`);

const warn = (line: string): void => printError(`${stderrPaint()("yellow", "headroom:")} ${line}`);

/** Nothing was run: why, as a report, and as the exit code that tells callers to try later. */
const refuse = (
  message: string,
  text: string,
  queuedS: number,
  swapMb: number,
  options: RunOptions,
  reportFile: ReportFile | undefined,
): number => {
  const note = `${quote(text)} was ${message}.`;
  const report: HeadroomReport = { ...unboxedReport(options), swap_cap_mb: swapMb, queued_s: queuedS, note };
  const unwritten = reportFile?.write(report);
  if (unwritten) warn(unwritten.message);
  printError(options.json ? JSON.stringify(report) : `${stderrPaint()("red", "headroom:")} ${note}`);
  return REFUSED;
};

/** As if headroom were not there. */
const runLikeThis = async (
  words: string[],
  options: RunOptions,
  reportFile: ReportFile | undefined,
): Promise<number> => {
  const code = await runUnboxed(words);
  const unwritten = reportFile?.write(unboxedReport(options));
  if (unwritten) warn(unwritten.message);
  return code;
};
/** The words as bytes. Node has decoded them as UTF-8, which loses a file name in another encoding. */
const rawWords = (native: Native, words: string[]): Buffer[] => {
  const raw = native.lastOwnArguments(words.length);
  const isSame = raw.length === words.length && raw.every((word, index) => word.toString() === words[index]);
  return isSame ? raw : words.map((word) => Buffer.from(word));
};

const tell = (report: HeadroomReport, tookMs: number, options: RunOptions): void => {
  if (options.json) {
    printError(JSON.stringify(report));
    return;
  }
  const paint = stderrPaint();
  const name = paint(report.oom_killed ? "red" : "yellow", "headroom:");
  if (report.note !== undefined) printError(`${name} ${report.note}`);
  if (options.verbose) {
    const peak = report.peak_mb === undefined ? "" : `, peak ${formatMb(report.peak_mb)} (${report.peak_source})`;
    const swap = report.swap_cap_mb < 0 ? "unlimited swap" : `${formatMb(report.swap_cap_mb)} of swap`;
    printError(
      `${paint("dim", "headroom:")} mode ${report.mode}, cap ${formatMb(report.memory_cap_mb)} and ${swap}${peak}, took ${formatSeconds(tookMs / 1000)}`,
    );
  }
};

const explainFailedStart = ({ failure, message }: FailedStart): number => {
  if (failure === "not-found") {
    printError(`hermes-headroom: ${message}`);
    return NOT_FOUND;
  }
  if (failure === "not-executable") {
    printError(`hermes-headroom: ${message}`);
    return NOT_EXECUTABLE;
  }
  throw new HeadroomError(failure === "working-directory" ? "E_WORKING_DIRECTORY" : "E_START", message);
};

/** A working directory that was removed makes every tool fail in its own odd way; say it once, before. */
const checkWorkingDirectory = (): void => {
  try {
    process.cwd();
  } catch (cause) {
    throw new HeadroomError("E_WORKING_DIRECTORY", "the current directory no longer exists", {
      fix: "Change to one that exists (cd) and run the command again.",
      cause,
    });
  }
};

/** Fail open: without the addon the command runs as if headroom were not there, with one visible warning. */
const runWithoutAddon = async (
  words: string[],
  options: RunOptions,
  reportFile: ReportFile | undefined,
): Promise<number> => {
  const status = nativeStatus();
  const why = status.available ? "" : `${status.detail}. ${status.fix}`;
  if (options.mode !== undefined && options.mode !== "off") {
    throw new HeadroomError("E_NATIVE", `mode ${options.mode} needs the native addon: ${why}`);
  }
  warn(`nothing holds this job: ${why}`);
  const code = await runUnboxed(words);
  const unwritten = reportFile?.write(unboxedReport(options));
  if (unwritten) warn(unwritten.message);
  return code;
};

const unboxedReport = (options: RunOptions): HeadroomReport => ({
  memory_cap_mb: options.memory ?? 0,
  swap_cap_mb: options.swap ?? 0,
  isolated: false,
  mode: "off",
  oom_killed: false,
});
