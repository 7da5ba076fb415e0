import { ConflictError, type ErrorCode, InvalidInputError, PayoutError, type Problem } from '../base/errors.js';
import { UnreadableRecordError } from '../ledger/payout.js';

/** Errors as `application/problem+json` (RFC 9457), with the library's codes, fields and rules. */

/** What only the door refuses. */
const DOOR_CODES = {
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NO_SUCH_ROUTE: 404,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  NOT_JSON: 415,
  RATE_LIMITED: 429,
  INTERNAL: 500,
} as const;
type DoorCode = keyof typeof DOOR_CODES;

const STATUS_OF: Partial<Record<ErrorCode, number>> = {
  INVALID_INPUT: 400,
  NOT_FOUND: 404,
  CONFLICT: 409,
  NOT_VERIFIED: 422,
  REDIS_UNAVAILABLE: 503,
  UNSUPPORTED_FORMAT: 503,
  CLOSED: 503,
};

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
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
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: DoorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

interface ProblemExtras {
  readonly problems?: readonly Problem[];
  readonly fields?: readonly string[];
}

export function toProblemReply(
  code: ErrorCode | DoorCode,
  status: number,
  detail: string,
  extras: object = {},
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const body = { type: 'about:blank', title: TITLES[status], status, code, detail, ...extras };
  return { status, body, headers: { 'content-type': 'application/problem+json', ...headers } };
}

/** @returns undefined for an error that nobody expected: its text stays in the log */
export function describeProblem(error: unknown): Reply | undefined {
  if (error instanceof RefusedError) {
    return toProblemReply(error.code, DOOR_CODES[error.code], error.message, {}, error.headers);
  }
  if (error instanceof UnreadableRecordError) return toProblemReply('NOT_VERIFIED', 422, error.message);
  const status = error instanceof PayoutError ? STATUS_OF[error.code] : undefined;
  if (!(error instanceof PayoutError) || status === undefined) return undefined;
  return toProblemReply(
    error.code,
    status,
    error.message,
    extrasOf(error),
    status === 503 ? { 'retry-after': '1' } : {},
  );
}

function extrasOf(error: PayoutError): ProblemExtras {
  if (error instanceof InvalidInputError) return { problems: error.problems };
  if (error instanceof ConflictError && error.fields.length > 0) return { fields: error.fields };
  return {};
}
