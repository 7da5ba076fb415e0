/** What is wrong, as one word a program can branch on. */
export type ErrorCode =
  | 'INVALID_INPUT'
  | 'INVALID_CONFIG'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'NOT_VERIFIED'
  | 'SIGNER_FAILED'
  | 'REDIS_UNAVAILABLE'
  | 'GATEWAY_REJECTED'
  | 'GATEWAY_UNAVAILABLE'
  | 'GATEWAY_INVALID_RESPONSE'
  | 'UNSUPPORTED_FORMAT'
  | 'JOURNAL_UNAVAILABLE'
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

/** The code of an error that this package throws; undefined for any other. */
export function errorCode(error: unknown): ErrorCode | undefined {
  return error instanceof PayoutError ? error.code : undefined;
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

/** The present state does not allow the request. The message says what was found and what is allowed. */
export class ConflictError extends PayoutError {
  /** The fields that differ, if the data conflicts. */
  readonly fields: readonly string[];

  constructor(message: string, fields: readonly string[] = []) {
    super('CONFLICT', message);
    this.fields = fields;
  }
}

/** The transaction is not the payout's payment, or the gateway does not know it. Nothing was changed. */
export class TransactionMismatchError extends ConflictError {}

/**
 * A signature or an approval is missing or does not count. The message says which check failed. Nothing was changed.
 */
export class NotVerifiedError extends PayoutError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('NOT_VERIFIED', message, options);
  }
}

/**
 * A signer gave no signature that counts: its agent or program cannot be reached, did not answer in time, refused, or
 * answered for another key. Nothing was changed; asking again is safe.
 */
export class SignerError extends PayoutError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('SIGNER_FAILED', message, options);
  }
}

/** A record or a key of the ledger cannot be read: someone has altered it in Redis. Nothing was changed. */
export class UnreadableRecordError extends NotVerifiedError {
  constructor(what: string, cause: Error) {
    super(`${what} in Redis cannot be read: ${cause.message}`, { cause });
  }
}

/** Redis did not respond in time or could not be reached. The outcome is unknown; asking again is safe. */
export class RedisUnavailableError extends PayoutError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('REDIS_UNAVAILABLE', message, options);
  }
}

/**
 * Another version of this package wrote the ledger or a send journal, and only that can read it. Nothing was changed.
 */
export class UnsupportedFormatError extends PayoutError {
  constructor(message: string) {
    super('UNSUPPORTED_FORMAT', message);
  }
}

/** The send journal cannot be written, or its disk does not answer. Only a worker meets it. */
export class JournalUnavailableError extends PayoutError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('JOURNAL_UNAVAILABLE', message, options);
  }
}

/** The awaited event did not happen in time. */
export class WaitTimeoutError extends PayoutError {
  constructor(message: string) {
    super('TIMEOUT', message);
  }
}

/** The object is closed. */
export class ClosedError extends PayoutError {
  constructor(message: string) {
    super('CLOSED', message);
  }
}

/** The operator declined, or stopped half-way. The message says what was already done. */
export class StoppedError extends PayoutError {
  constructor(message: string) {
    super('STOPPED', message);
  }
}
