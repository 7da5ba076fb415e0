import { STATUS_CODES } from 'node:http';
import { ConflictError, type ErrorCode, InvalidInputError, PayoutError } from '../base/errors.js';
import { UnreadableRecordError } from '../ledger/payout.js';

/** Errors as `application/problem+json` (RFC 9457), with the library's codes, fields and rules. */

/** What only the door refuses. */
const DOOR_STATUSES = {
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NO_SUCH_ROUTE: 404,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  NOT_JSON: 415,
  RATE_LIMITED: 429,
  INTERNAL: 500,
} as const;
type DoorCode = keyof typeof DOOR_STATUSES;

const STATUSES: Readonly<Partial<Record<ErrorCode | DoorCode, number>>> = {
  ...DOOR_STATUSES,
  INVALID_INPUT: 400,
  NOT_FOUND: 404,
  CONFLICT: 409,
  NOT_VERIFIED: 422,
  REDIS_UNAVAILABLE: 503,
  UNSUPPORTED_FORMAT: 503,
  CLOSED: 503,
};

/** A response, before it is written. */
export interface Reply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Refused by the door itself, before the queue. */
export class RefusedError extends Error {
  readonly code: DoorCode;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(code: DoorCode, message: string, headers?: Readonly<Record<string, string>>) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

export function toProblemReply(
  code: ErrorCode | DoorCode,
  detail: string,
  extras?: object,
  headers?: Readonly<Record<string, string>>,
): Reply {
  const { [code]: status = 500 } = STATUSES;
  const body = { type: 'about:blank', title: STATUS_CODES[status], status, code, detail, ...extras };
  const retry = status === 503 ? { 'retry-after': '1' } : {};
  return { status, body, headers: { 'content-type': 'application/problem+json', ...retry, ...headers } };
}

/** @returns undefined for an error that nobody expected: its text stays in the log */
export function describeProblem(error: unknown): Reply | undefined {
  if (error instanceof RefusedError) return toProblemReply(error.code, error.message, {}, error.headers);
  if (error instanceof UnreadableRecordError) return toProblemReply('NOT_VERIFIED', error.message);
  if (!(error instanceof PayoutError) || STATUSES[error.code] === undefined) return undefined;
  return toProblemReply(error.code, error.message, extrasOf(error));
}

function extrasOf(error: PayoutError): object {
  if (error instanceof InvalidInputError) return { problems: error.problems };
  if (error instanceof ConflictError && error.fields.length > 0) return { fields: error.fields };
  return {};
}
