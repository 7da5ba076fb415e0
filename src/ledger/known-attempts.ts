import type { SendAttempt } from './sender-ledger.js';

/** An attempt of format 1, which kept the epoch of the last attempt only. Keep equal to the scripts. */
const FORMER_ATTEMPT = '?';

export class KnownAttempts {
  readonly #last: number;
  readonly #words: readonly string[];
  readonly #epoch: string | undefined;

  constructor({ attempt = '0', tokens = '', epoch }: Readonly<Record<string, string>>) {
    this.#last = Number(attempt);
    this.#words = tokens.split(' ').filter(Boolean);
    this.#epoch = epoch;
  }

  /** Identifies an attempt by its token: a ledger that came back older gives its number out again. */
  knows({ attempt, token }: Pick<SendAttempt, 'attempt' | 'token'>): boolean {
    const word = this.#wordOf(attempt);
    if (word === FORMER_ATTEMPT) return token.startsWith('e:');
    return word !== '' && word.split('/').includes(token);
  }

  /** Whether the payout's state belongs to this attempt: the last one, and the newest of several timelines. */
  isNewest({ attempt, token }: Pick<SendAttempt, 'attempt' | 'token'>): boolean {
    if (attempt !== this.#last) return false;
    const word = this.#wordOf(attempt);
    return word === FORMER_ATTEMPT || word.split('/').at(-1) === token;
  }

  /** FORMER_ATTEMPT if only the number is known; several tokens for several timelines. */
  #wordOf(attempt: number): string {
    if (!(attempt >= 1 && attempt <= this.#last)) return '';
    const word = this.#words[attempt - 1];
    if (word !== undefined) return word;
    return attempt === this.#last && this.#epoch !== undefined ? `e:${this.#epoch}` : FORMER_ATTEMPT;
  }
}
