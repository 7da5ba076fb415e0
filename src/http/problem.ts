import { STATUS_CODES } from 'node:http';
import { ConflictError, InvalidInputError, PayoutError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';

/** Errors as `application/problem+json` (RFC 9457). */

const STATUSES = {
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NO_SUCH_ROUTE: 404,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  NOT_JSON: 415,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  INVALID_INPUT: 400,
  NOT_FOUND: 404,
  CONFLICT: 409,
  NOT_VERIFIED: 422,
  REDIS_UNAVAILABLE: 503,
  UNSUPPORTED_FORMAT: 503,
  CLOSED: 503,
} as const;
type Code = keyof typeof STATUSES;
export const PROBLEM_CODES = Object.keys(STATUSES) as readonly Code[];
type Headers = Readonly<Record<string, string>>;

export interface Reply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Headers;
}

export class RefusedError extends Error {
  readonly reply: Reply;

  constructor(code: Code, message: string, headers?: Headers) {
    super(message);
    this.reply = toProblemReply(code, message, {}, headers);
  }
}

export function toProblemReply(code: Code, detail: string, extras?: object, headers?: Headers): Reply {
  const { [code]: status } = STATUSES;
  const body = { type: 'about:blank', title: STATUS_CODES[status], status, code, detail, ...extras };
  const retry = status === 503 ? { 'retry-after': '1' } : {};
  return { status, body, headers: { 'content-type': 'application/problem+json', ...retry, ...headers } };
}

/** @param route - for the log, which has the text of an error that nobody expected */
export function describeProblem(error: unknown, logger: Logger, route: string): Reply {
  if (error instanceof RefusedError) return error.reply;
  if (error instanceof RangeError && error.message.startsWith('Maximum call stack')) {
    return describeProblem(new InvalidInputError([{ field: 'body', message: 'is nested too deeply' }]), logger, route);
  }
  if (!(error instanceof PayoutError) || !Object.hasOwn(STATUSES, error.code)) {
    logger.error({ route, error: (error as Error).stack ?? String(error) }, 'a request failed');
    return toProblemReply('INTERNAL', 'The door failed; its log has the reason. Asking again is safe');
  }
  const problems = error instanceof InvalidInputError ? { problems: error.problems } : {};
  const fields = error instanceof ConflictError && error.fields.length > 0 ? { fields: error.fields } : {};
  return toProblemReply(error.code as Code, error.message, { ...problems, ...fields });
}
