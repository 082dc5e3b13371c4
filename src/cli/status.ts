/** `hermes-headroom status`. */
import { monotonicMs } from "../clock.js";
import { HeadroomError } from "../errors.js";
import { loadNative, nativeStatus } from "../native.js";
import { loadSettings } from "../settings/load.js";
import { cutText } from "../status/view/line.js";
import { takeSnapshot, type JobStatus, type StatusSnapshot, type WaitingStatus } from "../status/snapshot.js";
import {
  canDraw,
  formatMb,
  formatSeconds,
  printError,
  printLine,
  stderrPaint,
  stdoutPaint,
  terminalWidth,
  type Paint,
} from "./terminal.js";

export interface StatusOptions {
  json?: boolean;
  watch?: boolean;
  set?: string[];
}

export const statusCommand = async (options: StatusOptions): Promise<number> => {
  const native = loadNative();
  if (!native) {
    const status = nativeStatus();
    throw new HeadroomError(
      "E_NATIVE",
      status.available ? "no addon" : status.detail,
      status.available ? {} : { fix: status.fix },
    );
  }
  const paint = stdoutPaint();
  const { settings, problems } = await loadSettings({ environment: process.env, set: options.set ?? [] });
  const warning = stderrPaint();
  for (const problem of problems) printError(`${warning("yellow", "headroom:")} ${problem}`);
  if (options.watch) {
    // Nobody else pays for loading the view.
    const { watchAsJson, watchAsText, watchOnScreen } = await import("./watch.js");
    if (options.json) return watchAsJson(native, settings);
    if (canDraw()) return watchOnScreen(native, settings);
    return watchAsText(native, settings, (snapshot) => render(snapshot, paint, terminalWidth()));
  }
  const snapshot = takeSnapshot(native, monotonicMs(), { settings });
  if (options.json) printLine(JSON.stringify(snapshot));
  else render(snapshot, paint, terminalWidth()).forEach((line) => printLine(line));
  return 0;
};

const nextJob = ({ next_cap_mb, limits }: StatusSnapshot): string => {
  const reserve = `${formatMb(limits.reserve_mb)} are kept free`;
  return next_cap_mb === 0 ? `waits for memory; ${reserve}` : `gets at most ${formatMb(next_cap_mb)}; ${reserve}`;
};

/** The lines for people. */
export const render = (snapshot: StatusSnapshot, paint: Paint, width: number): string[] => {
  const { memory, pressure, jobs, waiting } = snapshot;
  const swap =
    memory.swap_total_mb === 0
      ? "no swap"
      : `swap ${formatMb(memory.swap_free_mb)} free of ${formatMb(memory.swap_total_mb)}`;
  const stalled = pressure
    ? `some ${pressure.some_avg10_percent.toFixed(1)} %, full ${pressure.full_avg10_percent.toFixed(1)} % of the last 10 s`
    : "not reported by this kernel";
  return [
    row("memory", `${formatMb(memory.available_mb)} available of ${formatMb(memory.total_mb)}, ${swap}`),
    row("pressure", stalled),
    row("mode", snapshot.mode),
    row("next job", nextJob(snapshot)),
    ...(snapshot.problem === null ? [] : [row("records", paint("yellow", snapshot.problem))]),
    "",
    ...(jobs.length === 0 ? [row("jobs", "none")] : renderJobs(jobs, paint, width)),
    "",
    ...(waiting.length === 0 ? [] : [...renderWaiting(waiting, paint, width), ""]),
    ...renderProcesses(snapshot, paint, width),
  ];
};

const row = (name: string, text: string): string => `${name.padEnd(10)} ${text}`;

/** A job takes a row for its numbers and one for its command, so that both fit into 80 columns. */
const renderJobs = (jobs: readonly JobStatus[], paint: Paint, width: number): string[] => {
  const header = paint("dim", cut(columns("PID", "STATE", "NOW", "PEAK", "CAP", "AGE", "STARTED BY"), width));
  const lines = jobs.flatMap((job) => {
    const who = `${job.who.name ?? "gone"} (${job.who.pid})`;
    const peak = job.peak_mb === null ? "–" : formatMb(job.peak_mb);
    const age = formatSeconds(job.age_s);
    const pid = String(job.pid ?? "–");
    const numbers = columns(pid, job.state, formatMb(job.now_mb), peak, formatMb(job.cap_mb), age, who);
    const left =
      job.state === "running"
        ? []
        : job.processes.map(({ pid: each, name, rss_mb }) => `${name} (${each}), ${formatMb(rss_mb)}`);
    const below = [
      paint("bold", cut(INDENT + job.command, width)),
      ...left.map((text) => paint("dim", cut(INDENT + text, width))),
    ];
    return [cut(numbers, width), ...below];
  });
  return [header, ...lines];
};

/** As with jobs: what it waits for stands below. */
const renderWaiting = (waiting: readonly WaitingStatus[], paint: Paint, width: number): string[] => [
  paint("dim", `${"PID".padStart(8)} ${"WAITED".padStart(9)} WAITING`),
  ...waiting.flatMap(({ pid, position, waiting_s, command, reason }) => {
    const waited = waiting_s === null ? "–" : formatSeconds(waiting_s);
    return [
      cut(`${String(pid ?? "–").padStart(8)} ${waited.padStart(9)} ${position}. ${command ?? UNKNOWN}`, width),
      ...(reason === null ? [] : [paint("yellow", cut(`${" ".repeat(22)}${reason}`, width))]),
    ];
  }),
];

const UNKNOWN = "not known: it could not be written down";
const INDENT = " ".repeat(9);

const columns = (
  pid: string,
  state: string,
  now: string,
  peak: string,
  cap: string,
  age: string,
  who: string,
): string =>
  [
    pid.padStart(8),
    state.padEnd(12),
    now.padStart(8),
    peak.padStart(8),
    cap.padStart(8),
    age.padStart(8),
    ` ${who}`,
  ].join(" ");

const renderProcesses = ({ processes }: StatusSnapshot, paint: Paint, width: number): string[] => [
  paint("dim", `${"PID".padStart(8)} ${"MEMORY".padStart(9)} LARGEST PROCESSES`),
  ...processes.map(({ pid, rss_mb, command, name, hermes }) => {
    const mark = hermes ? "hermes: " : "";
    return cut(`${String(pid).padStart(8)} ${formatMb(rss_mb).padStart(9)} ${mark}${command || name}`, width);
  }),
];

/** By the cells that a terminal needs, which are two for many characters. */
const cut = (line: string, width: number): string => (Number.isFinite(width) ? cutText(line, width, "…") : line);
