/** Lines of bytes, cut out of a stream. */

const NEWLINE = 0x0a;

/** Collects what comes in pieces. A line may be split anywhere, in the middle of a character as well. */
export class LineReader {
  #pieces: Buffer[] = [];
  #length = 0;
  readonly #limitBytes: number;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The lines that are whole now, without their ends; `undefined` when one is longer than allowed. */
  push(piece: Buffer): string[] | undefined {
    const lines: string[] = [];
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      this.#add(piece.subarray(from, end));
      if (this.#length > this.#limitBytes) return undefined;
      lines.push(Buffer.concat(this.#pieces).toString("utf8"));
      this.#pieces = [];
      this.#length = 0;
      from = end + 1;
    }
    this.#add(piece.subarray(from));
    return this.#length > this.#limitBytes ? undefined : lines;
  }

  #add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#length += piece.length;
  }
}
