import { ConflictError, NotFoundError, NotVerifiedError, type PayoutError } from '../../errors.js';
import { formatCount } from '../../format.js';
import type { CliContext } from '../context/cli-context.js';
import { toPlainText } from '../../plain-text.js';

/** What became of each of the payouts of a command. */
export class ApprovalTally {
  readonly #isAlone: boolean;
  readonly #writeError: CliContext['writeError'];
  readonly #errors: PayoutError[] = [];

  /** @param total - how many payouts the command is about: of one alone, its error ends the command */
  constructor(total: number, { writeError }: CliContext) {
    this.#isAlone = total === 1;
    this.#writeError = writeError;
  }

  /**
   * Notes why one payout is left as it is; the others are not held up by it.
   * @throws every error that is not about one payout alone
   */
  refuse(error: unknown): void {
    const isOfOne = [ConflictError, NotFoundError, NotVerifiedError].some((kind) => error instanceof kind);
    if (!isOfOne) throw error;
    this.#errors.push(error as PayoutError);
    if (!this.#isAlone) this.#writeError(`${toPlainText((error as PayoutError).message)}\n`);
  }

  /** @throws the error that gives the command its exit code: that of a signature before that of a state */
  end(): void {
    const [first] = this.#errors;
    if (first === undefined) return;
    if (this.#isAlone) throw first;
    const message = `${formatCount(this.#errors.length, 'payout')} left as they are, for the reasons above`;
    throw this.#errors.some((error) => error instanceof NotVerifiedError)
      ? new NotVerifiedError(message)
      : new ConflictError(message);
  }
}
