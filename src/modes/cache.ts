/** The modes that work here, tried anew from time to time: buses come and go. */
import { monotonicMs } from "../clock.js";
import type { Native } from "../native.js";
import { probeModes, type Modes } from "./choose.js";

const KEPT_MS = 60_000;

export class ModeCache {
  readonly #native: Native;
  #modes: Modes | undefined;
  #probedAt = 0;

  constructor(native: Native) {
    this.#native = native;
  }

  get(): Modes {
    const now = monotonicMs();
    if (this.#modes === undefined || now - this.#probedAt > KEPT_MS) {
      this.#modes = probeModes(this.#native);
      this.#probedAt = now;
    }
    return this.#modes;
  }

  /** What was found out did not hold. */
  forget(): void {
    this.#modes = undefined;
  }
}
