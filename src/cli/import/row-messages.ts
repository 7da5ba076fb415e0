/** About a screen; for all of them stderr can go to a file. */
const SHOWN_LINES = 50;

/** Where messages about rows go. */
export interface MessageOutput {
  readonly write: (text: string) => void;
  /** A progress bar is drawn there while rows are read. */
  readonly isTerminal: boolean;
}

/**
 * Writes messages about rows, of which there may be very many. A file or a program gets all of them at once; a terminal
 * gets the first ones, after the progress bar.
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

  /** Writes what was held back, and how many were left out. */
  end(): void {
    this.#output.write(this.#held.join(''));
    if (this.#left > 0) this.#output.write(`… and ${this.#left} more (use 2> errors.txt for all)\n`);
  }
}
