/** The daemon: one process that serves every agent of a user, and leaves when nobody has needed it for a while. */
import { adoptJobs } from "../job/adopt.js";
import { followJob } from "../job/events.js";
import { VARIABLES_LOOKED_AT } from "../lighten/looked-at.js";
import { measureMemory } from "../memory.js";
import { ModeCache } from "../modes/cache.js";
import { candidates } from "../modes/choose.js";
import { ownVersion, type Native } from "../native.js";
import { JobDiary } from "../run/diary.js";
import { classify } from "../classify/classify.js";
import { Sessions } from "../sessions/sessions.js";
import { Bridge } from "./bridge.js";
import { HeavyCall, type CallFacts } from "./call.js";
import { CallTable } from "./call-table.js";
import { methods } from "./methods.js";
import { Profile } from "./profile.js";
import { listen, type DaemonServer } from "./server.js";
import { CallStore } from "./store.js";
import { DaemonWatch } from "./watch.js";

export interface DaemonOptions {
  native: Native;
  runtimeDir: string;
  /** It leaves when nothing has happened for so long. */
  idleMs: number;
  warn: (line: string) => void;
}

/** How often it looks at itself. */
const LOOK_EVERY_MS = 2000;

export type DaemonEnd = "taken" | "idle" | "stopped";

/** Serves until it is told to stop, or has been idle; `taken` when another daemon serves this user. */
export const serve = async (options: DaemonOptions): Promise<DaemonEnd> => {
  const { native, runtimeDir, warn, idleMs } = options;
  const sessions = new Sessions();
  const store = new CallStore(runtimeDir);
  const watch = new DaemonWatch(native, runtimeDir, warn);
  const calls = new CallTable(sessions, store, () => void watch.stop());
  const modes = new ModeCache(native);
  const bridge = new Bridge({
    native,
    runtimeDir,
    modes,
    calls,
    sessions,
    onBusy: (profile, agentPid) => void watch.start(profile, agentPid),
    warn,
  });
  let settle: ((how: DaemonEnd) => void) | undefined;
  const ended = new Promise<DaemonEnd>((resolve) => (settle = resolve));
  const end = (how: DaemonEnd): void => settle?.(how);
  let lastUsedAt = performance.now();
  const dispatch = methods({
    bridge,
    version: ownVersion(),
    wantedVariables: VARIABLES_LOOKED_AT,
    stop: () => end("stopped"),
  });
  const server = await listen(native, runtimeDir, async (...request) => {
    lastUsedAt = performance.now();
    return dispatch(...request);
  });
  if (server === undefined) return "taken";
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => end("stopped"));
  takeOver(native, runtimeDir, store, sessions, calls);
  adoptJobs(native, runtimeDir, candidates(modes.get(), undefined)).forEach(warn);
  if (calls.running > 0) void watch.start(undefined, undefined);

  const idle = setInterval(
    () => {
      if (isBusy(server, calls)) lastUsedAt = performance.now();
      else if (performance.now() - lastUsedAt >= idleMs) end("idle");
      // Nobody would find it any more; the next daemon takes its jobs over.
      void server.look().then((isThere) => isThere || end("stopped"));
    },
    Math.min(idleMs, LOOK_EVERY_MS),
  );
  const how = await ended;
  clearInterval(idle);
  calls.keepNotes();
  await server.close();
  await watch.stop();
  return how;
};

const isBusy = (server: DaemonServer, calls: CallTable): boolean => server.connections() > 0 || calls.running > 0;

/** What a daemon before this one has left: its calls' jobs are watched to their end, its notes are given. */
const takeOver = (native: Native, runtimeDir: string, store: CallStore, sessions: Sessions, calls: CallTable): void => {
  for (const [session, notes] of store.notes()) notes.forEach((note) => sessions.addNote(session, note));
  for (const facts of store.calls()) {
    const call = resume(native, runtimeDir, facts);
    if (call === undefined) store.forget(facts.job ?? "");
    else calls.takeOver(call);
  }
};

/** A job that cannot be taken over must not keep the daemon from starting; `status` shows it. */
const resumed = (native: Native, runtimeDir: string, job: string): number | null => {
  try {
    return native.resumeJob(runtimeDir, job);
  } catch {
    return null;
  }
};

const resume = (native: Native, runtimeDir: string, facts: CallFacts): HeavyCall | undefined => {
  const { job, command, work, cwd, hermes_home, mode } = facts;
  if (job === null) return undefined;
  const eventsFd = resumed(native, runtimeDir, job);
  if (eventsFd === null) return undefined;
  const { environment } = new Profile(hermes_home, {});
  const diary = new JobDiary(environment, { command, kind: work.kind, cwd, classified: classify(command) });
  return new HeavyCall({
    facts,
    place: undefined,
    tracked: { id: job, mode, finish: () => {}, ended: followJob(eventsFd) },
    diary,
    measure: () => measureMemory(native),
    remark: undefined,
  });
};
