/** What the daemon keeps for each chat: notes for its next turn, its background jobs. */

/** An agent's own cache of chats has as many (Hermes: `agent.agent_cache.max_size`). */
const MOST_SESSIONS = 128;
const MOST_NOTES = 20;
/** An advice that comes at every turn is noise. */
const ADVICE_EVERY_MS = 10 * 60_000;

interface Session {
  notes: string[];
  /** Jobs that run on behind the chat. */
  background: Set<string>;
  advisedAt: number | undefined;
}

export class Sessions {
  /** Least recently used first. */
  readonly #sessions = new Map<string, Session>();

  addNote(id: string, note: string): void {
    const { notes } = this.#use(id);
    notes.push(note);
    if (notes.length > MOST_NOTES) notes.shift();
  }

  /** Each note is given once. */
  takeNotes(id: string): string[] {
    return this.#sessions.get(id)?.notes.splice(0) ?? [];
  }

  addJob(id: string, job: string): void {
    this.#use(id).background.add(job);
  }

  removeJob(id: string, job: string): void {
    this.#sessions.get(id)?.background.delete(job);
  }

  pendingJobs(id: string): number {
    return this.#sessions.get(id)?.background.size ?? 0;
  }

  /** Whether an advice may be given now; counts as given. `nowMs` never goes back. */
  mayAdvise(id: string, nowMs: number): boolean {
    const session = this.#use(id);
    if (session.advisedAt !== undefined && nowMs - session.advisedAt < ADVICE_EVERY_MS) return false;
    session.advisedAt = nowMs;
    return true;
  }

  /** The chat is over. Its jobs run on; nobody is left to be told. */
  close(id: string): void {
    this.#sessions.delete(id);
  }

  /** Notes that nobody has asked for yet, for whoever serves the chats next. */
  undelivered(): [session: string, notes: string[]][] {
    return [...this.#sessions].filter(([, { notes }]) => notes.length > 0).map(([id, { notes }]) => [id, [...notes]]);
  }

  #use(id: string): Session {
    const session = this.#sessions.get(id) ?? { notes: [], background: new Set(), advisedAt: undefined };
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    if (this.#sessions.size > MOST_SESSIONS) {
      // Whoever waits for nothing goes first.
      const idle = [...this.#sessions].find(([, each]) => each.notes.length === 0 && each.background.size === 0);
      this.#sessions.delete(idle?.[0] ?? [...this.#sessions.keys()][0] ?? "");
    }
    return session;
  }
}
