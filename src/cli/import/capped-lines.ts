/** Writes the first lines of a list that may be very long, and counts the rest. */
export class CappedLines {
  readonly #write: (text: string) => void;
  readonly #limit: number;
  #count = 0;

  constructor(write: (text: string) => void, limit: number) {
    this.#write = write;
    this.#limit = limit;
  }

  add(text: string): void {
    this.#count += 1;
    if (this.#count <= this.#limit) this.#write(`${text}\n`);
  }

  /** Says how many were left out. */
  end(): void {
    if (this.#count > this.#limit) this.#write(`… and ${this.#count - this.#limit} more\n`);
  }
}
