/** `hermes-headroom run`: one job from the command line. */
import { availableParallelism } from "node:os";
import { automaticCapMb, DEFAULT_SWAP_MB } from "../admission/cap.js";
import { poolLimits } from "../admission/pool.js";
import { HeadroomError } from "../errors.js";
import { adoptJobs } from "../job/adopt.js";
import { runUnboxed } from "../job/unboxed.js";
import { startJob, type FailedStart, type JobRequest } from "../job/start.js";
import { measureMemory } from "../memory.js";
import { candidates, faults, probeModes } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import { loadNative, nativeStatus, type Native } from "../native.js";
import { classify } from "../classify/classify.js";
import { diskFiles } from "../classify/scripts/files.js";
import { lightenWords } from "../lighten/words.js";
import { quoteWords } from "../shell/quote.js";
import { commandText } from "../outcome/command-text.js";
import { describeWork } from "../outcome/next-step.js";
import { buildNote } from "../outcome/note.js";
import { buildReport, exitCodeOf, type HeadroomReport } from "../outcome/report.js";
import { ReportFile } from "./report-file.js";
import { formatMb, formatSeconds, printError, stderrPaint } from "./terminal.js";

export interface RunOptions {
  memory?: number;
  swap?: number;
  mode?: Mode;
  report?: string;
  /** Light commands are run as if headroom were not there. */
  auto?: boolean;
  verbose?: boolean;
  json?: boolean;
}

const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/** Runs the command and answers the exit code to end with. */
export const runCommand = async (words: string[], options: RunOptions): Promise<number> => {
  const reportFile = options.report === undefined ? undefined : ReportFile.prepare(options.report);
  const native = loadNative();
  if (!native) return runWithoutAddon(words, options, reportFile);
  checkWorkingDirectory();
  const source = quoteWords(words);
  const classified = classify(source, { cwd: process.cwd(), files: diskFiles });
  if (options.auto && !classified.heavy) {
    reportFile?.write(unboxedReport(options));
    return runUnboxed(words);
  }

  // From here on a signal is kept for the job instead of ending this process, so that no box is left behind.
  const signals = native.SignalPassing.install();
  native.collectOrphans();
  const probed = probeModes(native);
  const modes = candidates(probed, options.mode);
  if (options.mode === undefined) faults(probed).forEach(warn);
  const { path: runtimeDir, problem } = native.runtimeDirectory();
  if (runtimeDir === null) warn(`jobs are not on record: ${problem}`);
  else adoptJobs(native, runtimeDir, modes);

  const memory = measureMemory(native);
  const memoryMb = options.memory ?? automaticCapMb(memory);
  const swapMb = options.swap ?? DEFAULT_SWAP_MB;
  const text = commandText(words);
  const work = describeWork(classified);
  const raw = rawWords(native, words);
  const lightened = lightenWords(words, source, classified, {
    capMb: memoryMb,
    cpus: availableParallelism(),
    environment: process.env,
  });
  // Words that are no UTF-8 cannot be read as a text, so they stay as they are.
  const isText = raw.every((word, index) => word.toString() === words[index] && !words[index].includes("\uFFFD"));
  const changes = isText ? lightened.changes : [];
  if (!options.json) changes.forEach(tellChange);
  const request: JobRequest = {
    argv: changes.length > 0 ? lightened.words.map((word) => Buffer.from(word)) : raw,
    variables: changes.length > 0 ? lightened.variables : [],
    text,
    kind: work.kind,
    memoryMb,
    swapMb,
    pool: poolLimits(memory),
    stdio: ["inherit", "inherit", "inherit"],
    runtimeDir,
    collectsOrphans: true,
    signals,
  };
  const job = startJob(native, modes, request);
  job.warnings.forEach(warn);
  if (!job.started) return explainFailedStart(job);

  const ended = await job.ended;
  if (!ended) throw new HeadroomError("E_NATIVE_CALL", "the job's supervision ended without a result");
  const report = buildReport({ memoryMb, swapMb, mode: job.mode }, ended);
  if (changes.length > 0) report.lightened = changes;
  const note = buildNote(report, ended, { text, work, possibleCapMb: automaticCapMb(measureMemory(native)) });
  if (note !== undefined) report.note = note;
  const unwritten = reportFile?.write(report);
  if (unwritten) warn(unwritten.message);
  tell(report, ended.took_ms, options);
  return exitCodeOf(ended);
};

const tellChange = (line: string): void => printError(`${stderrPaint()("dim", "headroom:")} ${line}`);

const warn = (line: string): void => printError(`${stderrPaint()("yellow", "headroom:")} ${line}`);

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
