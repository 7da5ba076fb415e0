import {
  ConflictError,
  InvalidInputError,
  NotFoundError,
  NotVerifiedError,
  PayoutError,
  RedisUnavailableError,
  type Problem,
} from '../../errors.js';

/** Why an approval was not taken, for the program that sent it. */
export interface Refusal {
  readonly status: number;
  readonly body: {
    /** One word for programs. */
    readonly code: string;
    readonly error: string;
    readonly problems?: readonly Problem[];
  };
}

const STATUS: readonly (readonly [kind: new (...args: never[]) => PayoutError, status: number])[] = [
  [InvalidInputError, 400],
  [NotVerifiedError, 403],
  [NotFoundError, 404],
  [ConflictError, 409],
  [RedisUnavailableError, 503],
];

/** What Express says of a body that it could not read, by its own words for it. */
const BODY_ERRORS: Readonly<Record<string, string>> = {
  'entity.too.large': 'The body is too large: it must be one signed approval, at most 16 KiB.',
  'entity.parse.failed':
    'The body is no JSON: it must be one signed approval, as `payouts approve --offline` prints it.',
  'encoding.unsupported': 'The body must not be compressed.',
  'charset.unsupported': 'The body must be UTF-8.',
};

/** The details of what nobody expected go to the log only. */
export function describeRefusal(error: Error & { readonly status?: number; readonly type?: string }): Refusal {
  const { status, type = '', message } = error;
  const known = STATUS.find(([kind]) => error instanceof kind);
  if (known !== undefined && error instanceof PayoutError) {
    const problems = error instanceof InvalidInputError ? { problems: error.problems } : {};
    return { status: known[1], body: { code: error.code, error: message, ...problems } };
  }
  if (status !== undefined && status >= 400 && status < 500) {
    return { status, body: { code: 'INVALID_INPUT', error: BODY_ERRORS[type] ?? 'The body cannot be read.' } };
  }
  return { status: 500, body: { code: 'INTERNAL', error: 'Internal error; see the log of the dashboard.' } };
}
