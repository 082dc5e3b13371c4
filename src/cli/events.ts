/** `hermes-headroom events`. */
import { dataDirectory, type LoggedEvent } from "../events/log.js";
import { followEvents, readLog } from "../events/read.js";
import { withoutControls } from "../outcome/command-text.js";
import { formatMb, formatSeconds, printError, printLine, stderrPaint, stdoutPaint, type Paint } from "./terminal.js";

export interface EventsOptions {
  json?: boolean;
  n: number;
  follow?: boolean;
}

const warn = (problem: string): void => printError(`${stderrPaint()("yellow", "headroom:")} ${problem}`);

export const eventsCommand = async ({ json, n, follow }: EventsOptions): Promise<number> => {
  const directory = dataDirectory(process.env);
  const paint = stdoutPaint();
  const print = (event: LoggedEvent): void => printLine(json ? JSON.stringify(event) : renderEvent(event, paint));
  const stop = new AbortController();
  // Started first, so that nothing falls between the last of the old ones and the first of the new ones.
  const following = follow ? followEvents(directory, stop.signal, warn) : undefined;
  const past = readLog(directory, n);
  past.problems.forEach(warn);
  past.events.forEach(print);
  if (past.events.length === 0 && past.problems.length === 0 && !json && !follow) printLine("no events yet");
  if (following === undefined) return 0;
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  for await (const event of following) print(event);
  return 0;
};

const COLOURS: Partial<Record<LoggedEvent["event"], Parameters<Paint>[0]>> = {
  oom: "red",
  watchdog: "red",
  refused: "yellow",
  queued: "cyan",
};

/** One line for people: when, what, the numbers, the command. */
export const renderEvent = (event: LoggedEvent, paint: Paint): string => {
  const time = event.at.replace("T", " ").slice(0, 19);
  const name = withoutControls(event.event).padEnd(8);
  const colour = COLOURS[event.event];
  const facts = [
    event.cap_mb === undefined ? "" : `cap ${formatMb(event.cap_mb)}`,
    event.peak_mb === undefined ? "" : `peak ${formatMb(event.peak_mb)}`,
    event.queued_s === undefined ? "" : `waited ${formatSeconds(event.queued_s)}`,
    event.took_s === undefined ? "" : `took ${formatSeconds(event.took_s)}`,
    event.exit_code === undefined ? "" : `exit ${event.exit_code}`,
    event.killed_by === undefined ? "" : `killed by ${event.killed_by}`,
    event.reason ?? "",
    ...(event.lightened ?? []),
  ]
    .filter((fact) => fact !== "")
    .map(withoutControls);
  const command = event.command === undefined ? "" : `  ${withoutControls(event.command)}`;
  return `${paint("dim", time)} ${colour === undefined ? name : paint(colour, name)} ${String(event.pid).padStart(7)}${command}${facts.length > 0 ? paint("dim", `  ${facts.join(", ")}`) : ""}`;
};
