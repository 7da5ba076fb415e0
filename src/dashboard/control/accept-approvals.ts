import express, { Router, type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express';
import { NotVerifiedError } from '../../errors.js';
import { networkOf } from '../login-throttle.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { type Payout, UnreadableRecordError } from '../../ledger/payout.js';
import type { Logger } from '../../logger.js';
import type { ApprovalView } from '../../control/approvals/approvable-payout.js';
import { parseUploadedApproval, storeApproval } from '../../control/operator/store-approval.js';
import { describeRefusal } from './describe-refusal.js';
import type { ControlFiles } from './control-files.js';
import { findMissing } from './missing-approvals.js';
import { refuseCrossSite } from './refuse-cross-site.js';
import { whoSaid } from './who-said.js';

/** Where the dashboard's one write is, seen from the pages of the account. */
export const APPROVALS_PATH = '/approvals';

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
