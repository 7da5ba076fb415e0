import { UnrecoverableError } from 'bullmq';

/**
 * Ends a job among the failed ones, where operators look for it, although nothing in the code failed: the message says all.
 * Without a stack trace, which would only take room in Redis and hide the message on Bull Board.
 */
export class ExpectedEndError extends UnrecoverableError {
  constructor(message: string) {
    super(message);
    this.stack = '';
  }
}
