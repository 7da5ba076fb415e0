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
import { type MissingApprovals, type Payout, UnreadableRecordError } from '../../ledger/payout.js';
import type { Logger } from '../../base/logger.js';
import type { ApprovalView } from '../../control/approvals/approvable-payout.js';
import { parseUploadedApproval, storeApproval } from '../../control/operator/store-approval.js';
import { networkOf } from '../login.js';
import { refuseCrossSite } from '../security-headers.js';
import type { ControlFiles } from './control-files.js';
import { whoSaid } from './payout-control.js';

/** Where the dashboard's one write is, seen from the pages of the account. */
const APPROVALS_PATH = '/approvals';

interface ApprovalsOptions {
  readonly ledger: PayoutLedger;
  readonly files: ControlFiles;
  readonly logger: Logger;
}

/** Three times a signed approval, with what `payouts approve --offline` prints beside it. */
const BODY_LIMIT = '16kb';

/**
 * The one write of the dashboard: it keeps an approval that proves itself, by the keyring of the dashboard. It grants
 * nothing, as no approval in Redis does: the worker verifies it with its own.
 */
export function acceptApprovals(options: ApprovalsOptions): Router {
  const { logger } = options;
  const router = Router({ caseSensitive: true, strict: true });
  const parseBody = express.json({ limit: BODY_LIMIT, type: 'application/json', inflate: false });
  router.post(APPROVALS_PATH, requireKeyring(options), refuseCrossSite, requireJson, parseBody, accept(options));
  router.use(APPROVALS_PATH, respondToRefusal(logger));
  return router;
}

/** Who has none could not tell a signature from any other text. */
function requireKeyring({ ledger, files }: ApprovalsOptions): RequestHandler {
  return (_, response, next) => {
    if (files.keyringOf(ledger.connection.platformId) !== undefined) {
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

function accept({ ledger, files, logger }: ApprovalsOptions): RequestHandler {
  const { platformId, clock } = ledger.connection;
  return async (request: Request, response: Response) => {
    const keyring = files.keyringOf(platformId);
    if (keyring === undefined) throw new NotVerifiedError('This dashboard has no keyring (PAYOUT_KEYS_FILE)');
    const uploaded = parseUploadedApproval(request.body);
    const { payoutId, decision, by, expiresAt } = uploaded.approval;
    const view = (): ApprovalView => ({ platformId, keyring, now: clock.wallNow() });
    const person = await storeApproval(ledger, await readPayout(ledger, payoutId), uploaded, view());
    const client = networkOf(request.ip ?? '');
    logger.info({ platformId, payoutId, decision, by, person, client }, 'signed approval stored');
    const payout = await readPayout(ledger, payoutId);
    response.json({ payoutId, decision, by, person, expiresAt, ...describeStatus(payout, files, view()) });
  };
}

/** What the payout has now, and what it lacks. */
function describeStatus(payout: Payout, files: ControlFiles, view: ApprovalView): object {
  const { approvedBy, rejectedBy } = whoSaid(payout, view);
  const missing = findMissing(payout, new Set(approvedBy), files.policyOf(view.platformId));
  return { state: payout.state, approvedBy, rejectedBy, missing: missing ?? null };
}

async function readPayout(ledger: PayoutLedger, payoutId: string): Promise<Payout> {
  try {
    return await ledger.require(payoutId);
  } catch (error) {
    if (error instanceof UnreadableRecordError) throw new NotVerifiedError(error.message);
    throw error;
  }
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

/** Why an approval was not taken, for the program that sent it. */
interface Refusal {
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
 * Whose approvals a held payout lacks: by the dashboard's own policy where it has one, else as the worker said last, which
 * may not have seen the newest approval yet.
 * @param approvedBy - persons whose approval counts
 * @returns undefined where none is missing, or nobody said so
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
