import { Presets, SingleBar } from 'cli-progress';
import type { Problem } from '../../base/errors.js';
import type { CliContext } from '../context/cli-context.js';
import type { Terminal } from '../context/confirm.js';

interface Progress {
  readonly update: (done: number) => void;
  readonly stop: () => void;
}

const HIDDEN: Progress = { update: () => undefined, stop: () => undefined };

/** @param total - without it the count is shown */
export function startProgress(label: string, total: number | undefined, stream: Terminal['output']): Progress {
  if (stream.isTTY !== true) return HIDDEN;
  const options = {
    stream,
    format: total === undefined ? `${label} {value}` : `${label} {bar} {percentage}%`,
    hideCursor: true,
    clearOnComplete: true,
  };
  const bar = new SingleBar(options, Presets.shades_classic);
  bar.start(total ?? 0, 0);
  return {
    update: (done) => {
      bar.update(done);
    },
    stop: () => {
      bar.stop();
    },
  };
}

/** About a screen. For all messages stderr can go to a file. */
const SHOWN_LINES = 50;

/** A file or program gets all messages at once. A terminal gets the first ones, after the progress bar. */
export class RowMessages {
  readonly #write: (text: string) => void;
  readonly #isTerminal: boolean;
  readonly #held: string[] = [];
  #left = 0;

  constructor({ writeError, terminal }: Pick<CliContext, 'writeError' | 'terminal'>) {
    this.#write = writeError;
    this.#isTerminal = terminal.output.isTTY === true;
  }

  readonly addProblem = (line: number, { field, message }: Problem): void => {
    this.add(`line ${line}: ${field}: ${message}`);
  };

  add(text: string): void {
    if (!this.#isTerminal) this.#write(`${text}\n`);
    else if (this.#held.length < SHOWN_LINES) this.#held.push(`${text}\n`);
    else this.#left += 1;
  }

  end(): void {
    this.#write(this.#held.join(''));
    if (this.#left > 0) this.#write(`… and ${this.#left} more (use 2> errors.txt for all)\n`);
  }
}
