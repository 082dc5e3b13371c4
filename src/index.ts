/** The package's public face. Importing it never throws, on any system. */
export { HeadroomError, type ErrorCode } from "./errors.js";
export { nativeStatus, type NativeReason, type NativeStatus } from "./native.js";
export { MODES, type Mode } from "./modes/mode.js";
export type { HeadroomReport, Victim } from "./outcome/report.js";
export { selftest, type Check, type SelftestResult } from "./selftest/selftest.js";
