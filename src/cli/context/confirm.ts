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

/**
 * @param field - option that answers instead
 * @throws InvalidInputError if stdin or stderr is no terminal
 */
export function requireTerminal({ input, output }: Terminal, field = '--yes'): void {
  if (input.isTTY && output.isTTY) return;
  const message = 'is required: there is no terminal to confirm on. Nothing was changed';
  throw new InvalidInputError([{ field, message }]);
}

export function stdinIsTaken(field = '--yes'): InvalidInputError {
  const message = 'is required: stdin holds the payouts, so the question cannot be answered on it. Nothing was changed';
  return new InvalidInputError([{ field, message }]);
}

interface ConfirmOptions {
  readonly terminal: Terminal;
  readonly signal?: AbortSignal;
  /** Required answer, if a yes is too easy. */
  readonly answer?: string;
}

/**
 * Returns only after a yes or the required answer.
 * @param question - without the hint at the answers
 * @throws StoppedError for any other answer, the end of the input, or an interruption
 */
export async function confirm(question: string, { terminal, signal, answer }: ConfirmOptions): Promise<void> {
  requireTerminal(terminal);
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
