/** What can be wrong, as one word a program can branch on. */
export type ErrorCode =
  | 'INVALID_INPUT'
  | 'INVALID_CONFIG'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'NOT_VERIFIED'
  | 'REDIS_UNAVAILABLE'
  | 'GATEWAY_REJECTED'
  | 'GATEWAY_UNAVAILABLE'
  | 'GATEWAY_INVALID_RESPONSE'
  | 'UNSUPPORTED_FORMAT'
  | 'TIMEOUT'
  | 'CLOSED'
  | 'STOPPED';

/** The base of every error that this package throws on purpose. `code` is stable; `message` is for operators. */
export class PayoutError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** One thing that is wrong with an input: which field, and which rule it breaks. */
export interface Problem {
  readonly field: string;
  readonly message: string;
}

/** The caller's data breaks a rule. Nothing was changed. */
export class InvalidInputError extends PayoutError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('INVALID_INPUT', problems.map((problem) => `${problem.field}: ${problem.message}`).join('; '));
    this.problems = problems;
  }
}

/** The environment or the options are not usable. All problems are reported at once. */
export class InvalidConfigError extends PayoutError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('INVALID_CONFIG', problems.map((problem) => `${problem.field}: ${problem.message}`).join('\n'));
    this.problems = problems;
  }
}

/** There is no such payout (or transaction, or batch). */
export class NotFoundError extends PayoutError {
  constructor(message: string) {
    super('NOT_FOUND', message);
  }
}

/** The state that is there does not allow what was asked. The message says what was found and what would be allowed. */
export class ConflictError extends PayoutError {
  /** The names of the fields that differ, where the conflict is one of data. */
  readonly fields: readonly string[];

  constructor(message: string, fields: readonly string[] = []) {
    super('CONFLICT', message);
    this.fields = fields;
  }
}

/** A transaction is not the payment of the payout that it was given for, or the gateway does not know it. Nothing was changed. */
export class TransactionMismatchError extends ConflictError {}

/** A signature, or an approval, is missing or does not count. The message says which check failed. Nothing was changed. */
export class NotVerifiedError extends PayoutError {
  constructor(message: string) {
    super('NOT_VERIFIED', message);
  }
}

/** Redis did not respond in time or could not be reached. What was asked may or may not have happened; asking again is safe. */
export class RedisUnavailableError extends PayoutError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('REDIS_UNAVAILABLE', message, options);
  }
}

/** The ledger, or a send journal, was written by a newer version of this package, which alone can read it. Nothing was changed. */
export class UnsupportedFormatError extends PayoutError {
  constructor(message: string) {
    super('UNSUPPORTED_FORMAT', message);
  }
}

/** Something that was waited for did not happen in the time that was given. */
export class WaitTimeoutError extends PayoutError {
  constructor(message: string) {
    super('TIMEOUT', message);
  }
}

/** The object was closed and cannot be used any more. */
export class ClosedError extends PayoutError {
  constructor(message: string) {
    super('CLOSED', message);
  }
}

/** The operator said no, or stopped it half-way. The message says what was done until then. */
export class StoppedError extends PayoutError {
  constructor(message: string) {
    super('STOPPED', message);
  }
}
