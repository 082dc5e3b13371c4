/** `hermes-headroom status --watch`: loaded by that option alone. */
import { isatty } from "node:tty";
import { monotonicMs } from "../clock.js";
import type { Native } from "../native.js";
import type { Settings } from "../settings/defaults.js";
import { EMPTY_HISTORY, remember } from "../status/history.js";
import { takeSnapshot, type StatusSnapshot } from "../status/snapshot.js";
import { ASCII_GLYPHS, UNICODE_GLYPHS, type Glyphs, type Look } from "../status/view/look.js";
import { renderView, type ViewState } from "../status/view/view.js";
import { Screen } from "./screen.js";
import { printError, stdoutPaint, writeOut } from "./terminal.js";

const STDIN = 0;
const STDOUT = 1;

const REFRESH_MS = 1000;
/** Every process of the machine is read for the largest ones, which takes longer than all the rest. */
const LISTING_MS = 3000;
/** Text that is printed again and again is read by scrolling, or by a program. */
const PRINT_MS = 2000;

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const CTRL_L = "\u000C";
const CTRL_Z = "\u001A";

/** The environment says what a terminal can draw. */
export const glyphsFor = ({ TERM, LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): Glyphs => {
  const locale = LC_ALL || LC_CTYPE || LANG || "";
  // Without any locale nothing is known, and terminals of today speak UTF-8.
  const isUtf8 = locale === "" || /utf-?8/i.test(locale);
  return isUtf8 && TERM !== "linux" ? UNICODE_GLYPHS : ASCII_GLYPHS;
};

/** Prints what `print` makes of a snapshot every two seconds, until nobody reads it or a signal ends it. */
const repeat = async (
  native: Native,
  settings: Settings,
  print: (snapshot: StatusSnapshot) => string,
): Promise<number> => {
  for (let mode: StatusSnapshot["mode"] | undefined; ;) {
    const snapshot = takeSnapshot(native, monotonicMs(), { mode, settings });
    ({ mode } = snapshot);
    if (!writeOut(print(snapshot))) return 0;
    await new Promise((resolve) => setTimeout(resolve, PRINT_MS));
  }
};

/** Without a terminal that can be drawn on: `lines` again and again, with the time above. */
export const watchAsText = async (
  native: Native,
  settings: Settings,
  lines: (snapshot: StatusSnapshot) => string[],
): Promise<number> => {
  if (isatty(STDOUT)) {
    printError(`headroom: TERM=${process.env["TERM"] ?? ""} cannot be drawn on; printing every 2 s, Ctrl-C ends it`);
  }
  return repeat(native, settings, (snapshot) => `-- ${clock()}\n${lines(snapshot).join("\n")}\n\n`);
};

/** One object a line. */
export const watchAsJson = async (native: Native, settings: Settings): Promise<number> =>
  repeat(native, settings, (snapshot) => `${JSON.stringify(snapshot)}\n`);

const clock = (): string => new Date().toTimeString().slice(0, 8);

const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** The live view; ends with `q`, Ctrl-C or a signal, and leaves the terminal as it was. */
export const watchOnScreen = async (native: Native, settings: Settings): Promise<number> => {
  const hasKeys = isatty(STDIN);
  const look: Look = { paint: stdoutPaint(), glyphs: glyphsFor(process.env) };
  const state: ViewState = { clock: clock(), isPaused: false, order: "age", hasKeys };
  const screen = new Screen(
    (text) => {
      if (!writeOut(text)) throw new TerminalGone();
    },
    hasKeys ? STDIN : undefined,
  );
  // Whatever ends this process, it comes by here, even what nobody has thought of.
  const restore = (): void => screen.leave();
  process.on("exit", restore);

  let history = EMPTY_HISTORY;
  let snapshot: StatusSnapshot | undefined;
  let listing: { atMs: number; listed: ReturnType<Native["listProcesses"]> } | undefined;
  const measure = (): StatusSnapshot => {
    const atMs = performance.now();
    // Timers come a little late, never early; half a refresh is the middle between two of them.
    if (listing === undefined || atMs - listing.atMs > LISTING_MS - REFRESH_MS / 2) {
      listing = { atMs, listed: native.listProcesses() };
    }
    const { listed } = listing;
    snapshot = takeSnapshot(native, monotonicMs(), {
      mode: snapshot?.mode,
      listed,
      largest: screen.size.rows,
      settings,
    });
    history = remember(history, snapshot.pressure, atMs);
    state.clock = clock();
    return snapshot;
  };
  const draw = (): void => screen.draw(renderView(snapshot ?? measure(), history, screen.size, look, state));

  let timer: NodeJS.Timeout | undefined;
  let end: { signal?: NodeJS.Signals } | undefined;
  try {
    end = await new Promise<{ signal?: NodeJS.Signals }>((resolve, reject) => {
      /** What happens later than now must not leave the terminal as it is either. */
      const guarded = (action: () => void): void => {
        try {
          action();
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      for (const signal of ENDING_SIGNALS) process.on(signal, () => resolve({ signal }));
      process.on("SIGCONT", () =>
        guarded(() => {
          screen.enter();
          draw();
        }),
      );
      const actions: Record<string, () => void> = {
        q: () => resolve({}),
        Q: () => resolve({}),
        [CTRL_D]: () => resolve({}),
        // The terminal does not make a signal of it while keys are read one by one.
        [CTRL_C]: () => resolve({ signal: "SIGINT" }),
        [CTRL_Z]: () => {
          screen.leave();
          process.kill(0, "SIGTSTP");
        },
        [CTRL_L]: () => {
          screen.leave();
          screen.enter();
          draw();
        },
        p: () => {
          state.isPaused = !state.isPaused;
          if (!state.isPaused) measure();
          draw();
        },
        s: () => {
          state.order = state.order === "age" ? "memory" : "age";
          draw();
        },
      };
      screen.onKey((key) => guarded(actions[key] ?? (() => undefined)));
      screen.onResize(() => guarded(draw));
      timer = setInterval(
        () =>
          guarded(() => {
            if (state.isPaused) return;
            measure();
            draw();
          }),
        REFRESH_MS,
      );
      guarded(() => {
        // Measured before the screen is taken: what fails now is told on the screen that was there.
        measure();
        screen.enter();
        draw();
      });
    });
  } catch (error) {
    if (!(error instanceof TerminalGone)) throw error;
  } finally {
    clearInterval(timer);
    screen.close();
    process.off("exit", restore);
    for (const signal of ENDING_SIGNALS) process.removeAllListeners(signal);
    process.removeAllListeners("SIGCONT");
  }
  // Whoever waits for us shall see that it was a signal, as if it had not been caught.
  if (end?.signal) process.kill(process.pid, end.signal);
  return 0;
};

/** Nobody sees the view any more. */
class TerminalGone extends Error {}
