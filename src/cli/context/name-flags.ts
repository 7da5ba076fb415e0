import { InvalidInputError } from '../../errors.js';

/**
 * Runs `work` and renames the fields of its input errors as people typed them: `payoutId` becomes `--payout-id`.
 * @throws what `work` throws
 */
export async function nameFlags<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.problems.map(({ field, message }) => ({ field: toFlag(field), message })));
  }
}

function toFlag(field: string): string {
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
