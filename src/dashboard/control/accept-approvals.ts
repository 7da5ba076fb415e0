import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import {
  ConflictError,
  InvalidInputError,
  NotFoundError,
  NotVerifiedError,
  PayoutError,
  type Problem,
  RedisUnavailableError,
} from '../../base/errors.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import type { MissingApprovals, Payout } from '../../ledger/payout.js';
import type { Logger } from '../../base/logger.js';
import type { ApprovalView } from '../../control/approvals/approvable-payout.js';
import { parseUploadedApproval, storeApproval } from '../../control/operator/store-approval.js';
import { networkOf } from '../login.js';
import { refuseCrossSite } from '../security-headers.js';
import type { ControlFiles } from './control-files.js';
import { whoSaid } from './payout-control.js';

const APPROVALS_PATH = '/approvals';

/** Three times a signed approval with the output of `payouts approve --offline`. */
const BODY_LIMIT = '16kb';

/**
 * The dashboard's one write: keeps an approval that the dashboard's keyring verifies. It grants nothing: the worker
 * verifies every approval in Redis with its own keyring.
 */
export function acceptApprovals(ledger: PayoutLedger, files: ControlFiles, logger: Logger): Router {
  const { platformId } = ledger.connection;
  const router = Router({ caseSensitive: true, strict: true });
  const parseBody = express.json({ limit: BODY_LIMIT, type: 'application/json', inflate: false });
  router.post(
    APPROVALS_PATH,
    requireKeyring(platformId, files),
    refuseCrossSite,
    requireJson,
    parseBody,
    accept(ledger, files, logger),
  );
  router.use(APPROVALS_PATH, respondToRefusal(logger));
  return router;
}

/** Without a keyring, a signature looks like any other text. */
function requireKeyring(platformId: number, files: ControlFiles): RequestHandler {
  return (_, response, next) => {
    if (files.keyringOf(platformId) !== undefined) {
      next();
      return;
    }
    const error =
      'This dashboard has no keyring (PAYOUT_KEYS_FILE), so it can verify no approval and takes none: use `payouts approve`.';
    response.status(404).json({ code: 'NOT_FOUND', error });
  };
}

const requireJson: RequestHandler = (request, response, next) => {
  const given = request.headers['content-type'] ?? 'none';
  if (/^application\/json *(;|$)/i.test(given)) {
    next();
    return;
  }
  const error = `The body must be one signed approval as JSON, with the header Content-Type: application/json (got ${given}).`;
  response.status(415).json({ code: 'INVALID_INPUT', error });
};

function accept(ledger: PayoutLedger, files: ControlFiles, logger: Logger): RequestHandler {
  const { platformId, clock } = ledger.connection;
  return async (request: Request, response: Response) => {
    const keyring = files.keyringOf(platformId);
    if (keyring === undefined) throw new NotVerifiedError('This dashboard has no keyring (PAYOUT_KEYS_FILE)');
    const approval = parseUploadedApproval(request.body);
    const { payoutId, decision, by, expiresAt } = approval;
    const view = (): ApprovalView => ({ platformId, keyring, now: clock.wallNow() });
    const person = await storeApproval(ledger, await ledger.require(payoutId), approval, view());
    const client = networkOf(request.ip ?? '');
    logger.info({ platformId, payoutId, decision, by, person, client }, 'signed approval stored');
    const payout = await ledger.require(payoutId);
    response.json({ payoutId, decision, by, person, expiresAt, ...describeStatus(payout, files, view()) });
  };
}

function describeStatus(payout: Payout, files: ControlFiles, view: ApprovalView): object {
  const { approvedBy, rejectedBy } = whoSaid(payout, view);
  const missing = findMissing(payout, new Set(approvedBy), files.policyOf(view.platformId));
  return { state: payout.state, approvedBy, rejectedBy, missing: missing ?? null };
}

function respondToRefusal(logger: Logger): ErrorRequestHandler {
  return (error: Error, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const { status, body } = describeRefusal(error);
    const client = networkOf(request.ip ?? '');
    if (status === 500) logger.error({ path: request.path, error: error.stack }, 'request failed');
    else logger.warn({ status, client, error: body.error }, 'approval refused');
    if (status === 503) response.set('Retry-After', '5');
    response.status(status).json(body);
  };
}

interface Refusal {
  readonly status: number;
  readonly body: {
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

/** Express's errors for an unreadable body, by its own codes. */
const BODY_ERRORS: Readonly<Record<string, string>> = {
  'entity.too.large': 'The body is too large: it must be one signed approval, at most 16 KiB.',
  'entity.parse.failed':
    'The body is no JSON: it must be one signed approval, as `payouts approve --offline` prints it.',
  'encoding.unsupported': 'The body must not be compressed.',
  'charset.unsupported': 'The body must be UTF-8.',
};

/** Details of an unexpected error go to the log only. */
function describeRefusal(error: Error & { readonly status?: number; readonly type?: string }): Refusal {
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

/**
 * Missing approvals of a held payout. The dashboard's own policy decides, or else the worker's last report, which may
 * be older than the newest approval.
 * @param approvedBy - signers whose approval counts
 * @returns undefined if none is missing or known to be missing
 */
function findMissing(
  { held }: Payout,
  approvedBy: ReadonlySet<string>,
  loaded: LoadedPolicy | undefined,
): MissingApprovals | undefined {
  const rule = loaded?.policy.rules.find(({ name }) => name === held?.rule);
  if (rule?.over.kind !== 'approve') return held?.needs;
  const { by, quorum } = rule.over;
  const group = loaded?.policy.groups.get(by);
  const persons = quorum - [...approvedBy].filter((person) => group?.has(person)).length;
  return persons > 0 ? { by, persons } : undefined;
}
