/** The calls of this daemon, from admission until their account is told. */
import type { HeadroomReport } from "../outcome/report.js";
import type { Sessions } from "../sessions/sessions.js";
import type { HeavyCall } from "./call.js";
import type { CallStore } from "./store.js";

/** A call that has ended is kept so long for its agent to ask. */
const KEPT_MS = 2 * 60_000;

export class CallTable {
  readonly #calls = new Set<HeavyCall>();
  readonly #takenOver = new Set<string>();
  readonly #sessions: Sessions;
  readonly #store: CallStore;
  readonly #onIdle: () => void;

  /** `onIdle`: the last job that ran has ended. */
  constructor(sessions: Sessions, store: CallStore, onIdle: () => void) {
    this.#sessions = sessions;
    this.#store = store;
    this.#onIdle = onIdle;
  }

  /** How many run. */
  get running(): number {
    return [...this.#calls].filter(({ isOver }) => !isOver).length;
  }

  /** Jobs of a daemon before this one that still run: they have their turn, but no slot any more. */
  get takenOver(): ReadonlySet<string> {
    return this.#takenOver;
  }

  /** A call that a daemon before this one has admitted. */
  takeOver(call: HeavyCall): void {
    const { job } = call.facts;
    if (job !== null) this.#takenOver.add(job);
    this.add(call);
  }

  add(call: HeavyCall): void {
    this.#calls.add(call);
    this.#store.keep(call.facts);
    // Taken over from a daemon before this one.
    if (call.facts.background) this.#sessions.addJob(call.facts.session_id, idOf(call));
    void call.over.then(() => this.#over(call));
  }

  /** By its job, else by the agent's own name for the call. */
  find(job: string | null, callId: string): HeavyCall | undefined {
    const calls = [...this.#calls];
    if (job !== null) return calls.find(({ facts }) => facts.job === job);
    return calls.findLast(({ facts }) => facts.job === null && facts.call_id === callId);
  }

  /** Its command runs on behind the chat, which is told of its end if there is something to tell. */
  goOn(call: HeavyCall, process: string | undefined): HeadroomReport {
    const report = call.goOn(process);
    if (call.isOver) {
      this.#tell(call);
      return report;
    }
    this.#sessions.addJob(call.facts.session_id, idOf(call));
    this.#store.keep(call.facts);
    return report;
  }

  /** Its account has been told. */
  answered(call: HeavyCall): void {
    if (call.isOver) this.#drop(call);
    else this.#sessions.addJob(call.facts.session_id, idOf(call));
  }

  keepNotes(): void {
    this.#store.keepNotes(this.#sessions.undelivered());
  }

  #over(call: HeavyCall): void {
    this.#takenOver.delete(call.facts.job ?? "");
    if (call.facts.background) this.#tell(call);
    // Its agent has yet to ask; one that is gone never will.
    else {
      setTimeout(() => {
        call.closeBackground();
        this.#drop(call);
      }, KEPT_MS).unref();
    }
    if (this.running === 0) this.#onIdle();
  }

  #tell(call: HeavyCall): void {
    const note = call.closeBackground();
    this.#sessions.removeJob(call.facts.session_id, idOf(call));
    if (note !== undefined) this.#sessions.addNote(call.facts.session_id, note);
    this.keepNotes();
    this.#drop(call);
  }

  #drop(call: HeavyCall): void {
    this.#calls.delete(call);
    if (call.facts.job !== null) this.#store.forget(call.facts.job);
  }
}

const idOf = ({ facts }: HeavyCall): string => facts.job ?? facts.call_id;
