import type { SendAttempt } from './sender-ledger.js';

/** Stands for an attempt of format 1, which kept the epoch of the last attempt only. As in the scripts. */
const FORMER_ATTEMPT = '?';

/** The attempts of a payout as its record names them: by number and token. */
export class KnownAttempts {
  readonly #last: number;
  readonly #words: readonly string[];
  readonly #epoch: string | undefined;

  constructor({ attempt = '0', tokens = '', epoch }: Readonly<Record<string, string>>) {
    this.#last = Number(attempt);
    this.#words = tokens.split(' ').filter(Boolean);
    this.#epoch = epoch;
  }

  /** Whether the record has seen this very attempt begin; its number alone is given out again by a ledger that came back older. */
  knows({ attempt, token }: Pick<SendAttempt, 'attempt' | 'token'>): boolean {
    const word = this.#wordOf(attempt);
    if (word === FORMER_ATTEMPT) return token.startsWith('e:');
    return word !== '' && word.split('/').includes(token);
  }

  /** Whether the payout's state is that of this very attempt: the last one, and of several timelines the newest. */
  isNewest({ attempt, token }: Pick<SendAttempt, 'attempt' | 'token'>): boolean {
    if (attempt !== this.#last) return false;
    const word = this.#wordOf(attempt);
    return word === FORMER_ATTEMPT || word.split('/').at(-1) === token;
  }

  /** The token of an attempt, or those of several timelines; FORMER_ATTEMPT where only its number is known. */
  #wordOf(attempt: number): string {
    if (!(attempt >= 1 && attempt <= this.#last)) return '';
    const word = this.#words[attempt - 1];
    if (word !== undefined) return word;
    return attempt === this.#last && this.#epoch !== undefined ? `e:${this.#epoch}` : FORMER_ATTEMPT;
  }
}
