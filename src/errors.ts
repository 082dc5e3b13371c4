/**
 * Errors that a person can act on: a code, the thing that is wrong, what to do.
 */

/**
 * | code | meaning | exit code |
 * | --- | --- | --- |
 * | `E_USAGE` | a wrong option or argument | 2 |
 * | `E_NATIVE` | the native addon is not there or does not fit | 1 |
 * | `E_MODE` | the mode asked for cannot be used here | 1 |
 * | `E_REPORT` | the report cannot be written | 2 |
 * | `E_WORKING_DIRECTORY` | the working directory is gone | 126 |
 * | `E_START` | the command could not be started | 126 |
 * | `E_OUTPUT` | stdout cannot be written | 1 |
 * | `E_SYSTEM` | the system has run out of something | 1 |
 * | `E_DAEMON` | the daemon cannot be started or reached | 1 |
 * | `E_HERMES_HOME` | Hermes' home is not there, or not ours | 1 |
 * | `E_NATIVE_CALL` | the kernel refused something the addon asked for | 1 |
 */
export type ErrorCode =
  | "E_USAGE"
  | "E_NATIVE"
  | "E_MODE"
  | "E_REPORT"
  | "E_WORKING_DIRECTORY"
  | "E_START"
  | "E_DAEMON"
  | "E_NATIVE_CALL"
  | "E_HERMES_HOME"
  | "E_OUTPUT"
  | "E_SYSTEM";

const EXIT_CODES: Record<ErrorCode, number> = {
  E_USAGE: 2,
  E_NATIVE: 1,
  E_MODE: 1,
  E_REPORT: 2,
  E_WORKING_DIRECTORY: 126,
  E_START: 126,
  E_DAEMON: 1,
  E_NATIVE_CALL: 1,
  E_HERMES_HOME: 1,
  E_OUTPUT: 1,
  E_SYSTEM: 1,
};

/** An expected failure that ends a command. */
export class HeadroomError extends Error {
  readonly code: ErrorCode;
  /** What to do about it, where something can be done. */
  readonly fix: string | undefined;

  constructor(code: ErrorCode, message: string, options: { fix?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "HeadroomError";
    this.code = code;
    this.fix = options.fix;
  }

  get exitCode(): number {
    return EXIT_CODES[this.code];
  }
}
