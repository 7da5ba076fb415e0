import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { followSignals } from '../../base/clock.js';
import { InvalidInputError, StoppedError } from '../../base/errors.js';
import { toPlainLines } from '../../base/plain-text.js';

/** Stdout stays for the result. */
export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean };
}

/** The file name that means stdin. */
export const STDIN = '-';

/**
 * Fails before a long file is read, if the operator cannot be asked.
 * @param file - of the payouts
 * @param field - option that answers instead
 * @throws InvalidInputError if stdin or stderr is no terminal, or stdin has the payouts
 */
export function requireOperator({ input, output }: Terminal, file?: string, field = '--yes'): void {
  const message = !(input.isTTY && output.isTTY)
    ? 'there is no terminal to confirm on'
    : file === STDIN
      ? 'stdin holds the payouts, so the question cannot be answered on it'
      : undefined;
  if (message === undefined) return;
  throw new InvalidInputError([{ field, message: `is required: ${message}. Nothing was changed` }]);
}

/**
 * Returns only after a yes or the required answer.
 * @param question - without the hint at the answers
 * @param answer - required if a yes is too easy
 * @throws StoppedError for any other answer, the end of the input, or an interruption
 */
export async function confirm(
  question: string,
  terminal: Terminal,
  signal?: AbortSignal,
  answer?: string,
): Promise<void> {
  requireOperator(terminal);
  const given = await ask(answer === undefined ? `${question} [y/N]` : question, terminal, signal);
  const isAgreed = answer === undefined ? /^\s*y(es)?\s*$/i.test(given) : given.trim() === answer;
  if (!isAgreed) throw new StoppedError('Nothing was changed');
}

async function ask(question: string, terminal: Terminal, signal: AbortSignal | undefined): Promise<string> {
  const lines = createInterface(terminal);
  const ended = new AbortController();
  lines.once('close', () => {
    ended.abort();
  });
  const { signal: either } = followSignals(ended.signal, ...(signal === undefined ? [] : [signal]));
  try {
    return await lines.question(`${toPlainLines(question)} `, { signal: either });
  } catch (error) {
    if (!either.aborted) throw error;
    terminal.output.write('\n');
    return 'no';
  } finally {
    lines.close();
  }
}
