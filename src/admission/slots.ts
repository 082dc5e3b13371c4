/** Slots and the line before them, as the policy sees them. The files behind are the addon's business. */

/** What a holder or a waiter says about itself, as JSON in its lock file. Sizes in MiB. */
export interface SlotDescription {
  pid: number;
  /** Who asks: one process may ask for several jobs at once. */
  id: string;
  /** The command, secrets masked. */
  command: string;
  kind: string;
  /** Since when it waits or holds, milliseconds of a clock that all processes share and that never jumps. */
  since_ms: number;
  /** The cap that it was admitted with; `null` while that is not decided. */
  cap_mb: number | null;
  /** Why it waits; `null` once it runs. */
  reason: string | null;
  /** The job on record that it was taken for; `null` while that has not started. */
  job: string | null;
}

/**
 * Who holds or waits. That they do is certain; the rest is what could be written down and read (a full disk, a
 * file that somebody wrote to).
 */
export type SlotUser = {
  /** The process itself runs; otherwise its number may be another one's by now. */
  isAlive: boolean;
  /** It is stopped, and does nothing until it is told to go on. */
  isStopped: boolean;
} & (
  | ({ isKnown: true } & SlotDescription)
  | {
      isKnown: false;
      pid: number | null;
      id: null;
      command: null;
      kind: null;
      since_ms: null;
      cap_mb: null;
      reason: null;
      job: null;
    }
);

/** A place in the line, or a slot. Everything is given back when the process ends, however it ends. */
export interface SlotPlace {
  /** Takes a slot when it is this one's turn and one is free. `ahead`: how many stand before it. */
  tryTake(): { taken: boolean; ahead: number };
  describe(description: SlotDescription): void;
  /** Gives the slot or the place up. More than once is fine. */
  leave(): void;
}

export interface Slots {
  join(limit: number, description: SlotDescription): SlotPlace;
  list(): { holders: SlotUser[]; waiting: SlotUser[] };
}
