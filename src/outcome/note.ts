/** The sentence that the agent's model, or a person, acts on. */
import type { EndedEvent, VictimEvent } from "../job/events.js";
import { bytesToMb } from "../memory.js";
import { obstacleFix } from "../modes/fix.js";
import type { HeadroomReport } from "./report.js";
import { exitCodeOf } from "./report.js";
import { describeCause } from "../watchdog/events.js";
import type { Work } from "./next-step.js";

/** Node and other programs abort by SIGABRT when their own heap limit is reached. */
const SIGABRT = 6;
/** Node takes about half of the memory that it finds in a cgroup as heap limit. */
const HEAP_PART_OF_CAP = 0.4;
const LONGEST_COMMAND = 120;

export interface NoteContext {
  /** The command as people read it. */
  text: string;
  work: Work;
  /** The cap that this machine could give now, for «give it more». */
  possibleCapMb: number;
  /** The heap cap that was set for Node. */
  heapMb?: number;
  /** The last lines that the command printed, where they were kept. */
  outputTail?: string;
  /** The command was ended because its time was up. */
  timedOutAfterS?: number;
  /** Whoever reads it typed `hermes-headroom run`, and can give it another cap. */
  isOwnRun?: boolean;
  /** What it needed before: the largest of the last peaks. */
  learnedPeakMb?: number;
}

/** What V8 prints before it gives up, in the main thread and in workers. */
const V8_OUT_OF_MEMORY = /JavaScript heap out of memory|ERR_WORKER_OUT_OF_MEMORY|FATAL ERROR: .{0,80}Allocation failed/;

/** A note, or `undefined` when nothing happened that anybody should act on. */
export const buildNote = (report: HeadroomReport, ended: EndedEvent, context: NoteContext): string | undefined => {
  const sentences = [whatHappened(report, ended, context), whatEscaped(report), whatIsLeft(report, ended)].filter(
    (part) => part !== undefined,
  );
  return sentences.length > 0 ? sentences.join(" ") : undefined;
};

const whatHappened = (report: HeadroomReport, ended: EndedEvent, context: NoteContext): string | undefined => {
  const command = quote(context.text);
  if (report.oom_killed) {
    const killer = report.killed_by === "headroom" ? "headroom" : "the kernel";
    const victims = describeVictims(ended.victims, ended.oom_kills + ended.cap_kills);
    if (!ended.cap_hit) {
      return `${killer === "headroom" ? "headroom" : "The kernel"} killed ${victims} of ${command}: memory ran out outside of this job's box (the machine's, or that of a limit above it); the job itself was within its ${report.memory_cap_mb} MB cap${peak(report)}. Next: wait for other work to end or give the outer limit more room, then ${context.work.nextStep}.`;
    }
    return `${command} hit its ${report.memory_cap_mb} MB memory cap: ${killer} killed ${victims} inside the job's box. Nothing outside the box was touched. ${advice(report, context)}`;
  }
  if (ended.watchdog && report.killed_by === "watchdog") {
    return `${command} was stopped by headroom's watchdog: the machine ${describeCause(ended.watchdog)}, and this was the newest job${peak(report)}. The agent and the older jobs were not touched. Next: wait for other work to end, then ${context.work.nextStep}.`;
  }
  if (context.timedOutAfterS !== undefined) {
    return `${command} was ended after ${context.timedOutAfterS} s, its time limit${peak(report)}; it was within its ${report.memory_cap_mb} MB cap. Next: ${context.work.nextStep}, or give it more time.`;
  }
  if (ended.pool_stopped && exitCodeOf(ended) !== 0 && report.killed_by !== "user") {
    return `${command} was ended from outside (exit code ${exitCodeOf(ended)}): systemd stopped the unit that holds all jobs. ${afterStop(report)}`;
  }
  const saysHeap = V8_OUT_OF_MEMORY.test(context.outputTail ?? "");
  const isLarge = (report.peak_mb ?? 0) >= report.memory_cap_mb * HEAP_PART_OF_CAP;
  const isAbort = exitCodeOf(ended) === 128 + SIGABRT && isLarge;
  if (report.mode !== "off" && (saysHeap || isAbort)) {
    const limit = context.heapMb === undefined ? "which it derives from the cap" : `${context.heapMb} MB here`;
    const how = saysHeap ? "ran out of Node's heap" : "aborted (exit code 134)";
    return `${command} ${how} under its ${report.memory_cap_mb} MB cap${peak(report)}${saysHeap ? `: V8 gave up at its own limit, ${limit}` : `, as Node does at its own heap limit, ${limit}`}. Nothing outside the box was touched. ${advice(report, context)}`;
  }
  return undefined;
};

/** A user's manager ends some seconds after the last login, with everything below it. */
const afterStop = ({ mode }: HeadroomReport): string => {
  const linger = obstacleFix(mode, "no-bus", false);
  return linger === undefined
    ? "That is what systemctl stop or a shutdown does. Next: run it again."
    : `That is what the end of this user's last login does, unless the user lingers. Next: ${linger}; then run it again.`;
};

const whatEscaped = ({ escaped = 0, memory_cap_mb }: HeadroomReport): string | undefined => {
  if (escaped === 0) return undefined;
  const who = escaped === 1 ? "1 process" : `${escaped} processes`;
  return `${who} of the job moved out of its box, where the ${memory_cap_mb} MB cap does not hold.`;
};

const whatIsLeft = (report: HeadroomReport, ended: EndedEvent): string | undefined => {
  const { length } = ended.left_running;
  if (length === 0) return undefined;
  const names = describeVictims(ended.left_running, length);
  const holds =
    report.isolated && !report.escaped
      ? `${length === 1 ? "it keeps" : "they keep"} the box and its ${report.memory_cap_mb} MB cap`
      : `no cap holds ${length === 1 ? "it" : "them"} until the next run`;
  return `Still running after the command ended: ${names}; ${holds}. See: hermes-headroom status`;
};

const advice = (report: HeadroomReport, context: NoteContext): string => {
  const { work, possibleCapMb, learnedPeakMb, isOwnRun = true } = context;
  const before =
    learnedPeakMb !== undefined && learnedPeakMb > report.memory_cap_mb ? ` It needed ${learnedPeakMb} MB before.` : "";
  const more =
    isOwnRun && possibleCapMb > report.memory_cap_mb
      ? `; or give it more: hermes-headroom run --memory ${possibleCapMb} allows what is free here now`
      : "";
  return `Next: ${work.nextStep}${more}.${before}`;
};

const peak = ({ peak_mb }: HeadroomReport): string => (peak_mb === undefined ? "" : ` (its peak was ${peak_mb} MB)`);

/** The first few by name, the rest by number. `total` may be larger than what is known by name. */
const describeVictims = (victims: readonly VictimEvent[], total: number): string => {
  if (victims.length === 0) return total === 1 ? "a process" : `${total} processes`;
  const shown = victims
    .slice(0, 3)
    .map(({ pid, name, rss_bytes }) => `${name} (pid ${pid}, ${bytesToMb(rss_bytes)} MB)`);
  const others = Math.max(total, victims.length) - shown.length;
  return shown.join(", ") + (others > 0 ? ` and ${others} more` : "");
};

/** The command in backquotes, on one line, cut to a readable length. */
export const quote = (text: string): string => {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return `\`${line.length > LONGEST_COMMAND ? `${line.slice(0, LONGEST_COMMAND - 1)}…` : line}\``;
};
