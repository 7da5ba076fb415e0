/** So many fit on a screen; whoever wants all of them sends stderr into a file. */
const SHOWN_LINES = 50;

/** Where lines about rows go. */
export interface MessageOutput {
  readonly write: (text: string) => void;
  /** A progress bar stands there while rows are read. */
  readonly isTerminal: boolean;
}

/**
 * Writes lines about rows, of which there may be very many. A file or a program gets all of them, at once; a terminal
 * the first ones, when the progress bar is gone.
 */
export class RowMessages {
  readonly #output: MessageOutput;
  readonly #held: string[] = [];
  #left = 0;

  constructor(output: MessageOutput) {
    this.#output = output;
  }

  add(text: string): void {
    if (!this.#output.isTerminal) this.#output.write(`${text}\n`);
    else if (this.#held.length < SHOWN_LINES) this.#held.push(`${text}\n`);
    else this.#left += 1;
  }

  /** Writes what was held back, and says how many were left out. */
  end(): void {
    this.#output.write(this.#held.join(''));
    if (this.#left > 0) this.#output.write(`… and ${this.#left} more: 2> errors.txt keeps all of them\n`);
  }
}
