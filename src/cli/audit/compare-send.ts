import { DAY_MS } from '../../base/clock.js';
import { wasSent } from '../../journal/journal-view.js';
import { isSameGatewayId } from '../../base/fields.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import type { AuditedRecord } from '../../ledger/reads/read-audited.js';
import type { PayoutState } from '../../ledger/states.js';
import { type Finding, type FindingKind, findingOf } from './finding.js';

export interface SendComparison {
  readonly findings: readonly Finding[];
  /** Only an operator's statement supports the ledger's state. */
  readonly isOnWord?: true;
}

const ALTERED =
  'The journal says what was sent. Someone has altered the record in Redis: see docs/runbooks/tampering.md.';
const OLDER =
  'Redis came back older, or someone altered it. Ask the gateway before this is paid again; `payouts stats` shows how the ledger is adopted.';
const PAID_TWICE = 'It may have been paid twice: ask the gateway for both.';
const LOOK = 'Ask the gateway what was paid; `payouts get` and `payouts activity` show what was done with it.';

export interface Removal {
  readonly hasLater: boolean;
  readonly retentionDays: number | undefined;
  /** This host's archive has it in this state. */
  readonly isArchived: boolean;
  readonly now: number;
}

export function compareSend(send: JournalEntry, found: AuditedRecord, removal: Removal): SendComparison {
  const { attempt } = send;
  if (found.kind === 'removed') return compareRemoved(send, found.state, removal);
  if (found.kind === 'unreadable') return { findings: [toUnreadable(send.payoutId, found.message)] };
  const outcome = describeOutcome(send);
  if (found.kind === 'missing') {
    if (!wasSent(send)) return NOTHING;
    const message = `the journal has attempt ${attempt} (${outcome}); the ledger has no such payout`;
    return one(send, 'not_in_ledger', message, OLDER);
  }
  const { payout, attempts } = found;
  const altered = findAltered(send, payout);
  if (altered !== undefined) return one(send, 'altered', altered, ALTERED);
  if (!attempts.knows(send)) {
    if (!wasSent(send)) return NOTHING;
    const message = `the journal has attempt ${attempt} (${outcome}); the ledger says ${payout.state}, attempt ${payout.attempt}, and does not know that one`;
    return one(send, 'not_in_ledger', message, OLDER);
  }
  if (attempts.isNewest(send)) return compareState(send, payout);
  if (send.outcome?.kind !== 'accepted' || isSameGatewayId(send.outcome.gatewayId, payout.gatewayId)) return NOTHING;
  const message = `attempt ${attempt} was accepted (as ${send.outcome.gatewayId}), and the payout was sent again after it (attempt ${payout.attempt})`;
  return one(send, 'sent_again', message, PAID_TWICE);
}

/**
 * Compares a payout's accepted attempts with each other: its record may be gone or altered.
 * @returns a finding for each transaction that differs from the last
 */
export function compareAccepted(sends: readonly JournalEntry[]): Finding[] {
  const last = sends.reduce((newest, send) => (send.at > newest.at ? send : newest));
  return sends
    .filter((send) => !isSameGatewayId(gatewayIdOf(send), gatewayIdOf(last)))
    .map((send) => {
      const message = `the journal says of attempt ${send.attempt} ${describeOutcome(send)}, and of attempt ${last.attempt} ${describeOutcome(last)}`;
      return findingOf(send, 'sent_again', message, PAID_TWICE);
    });
}

function gatewayIdOf({ outcome }: JournalEntry): string | undefined {
  return outcome?.kind === 'accepted' ? outcome.gatewayId : undefined;
}

const REMOVED =
  'Someone has deleted the record in Redis, or PAYOUT_RETENTION_DAYS of the worker is another one: compare. Ask the gateway what was paid; the journal has the payment.';

/** States at removal by retention, by the last attempt's outcome. */
const REMOVABLE: Readonly<Record<OutcomeKind, readonly string[]>> = {
  accepted: ['completed', 'failed'],
  rejected: ['rejected', 'cancelled', 'written_off'],
  // An operator gave the transaction, wrote it off, or stated that it was not sent and cancelled it.
  unknown: ['completed', 'failed', 'written_off', 'cancelled'],
  not_sent: ['cancelled', 'written_off'],
};

function compareRemoved(send: JournalEntry, state: string, removal: Removal): SendComparison {
  const { hasLater, retentionDays, isArchived, now } = removal;
  const kind = send.outcome?.kind ?? 'unknown';
  const isPossible = REMOVABLE[kind].includes(state) || (hasLater && kind !== 'accepted');
  if (!isPossible) {
    const message = `the journal says ${describeOutcome(send)}; the ledger says that it was removed as ${state}`;
    return one(send, 'state', message, LOOK);
  }
  const since = send.outcomeAt ?? send.at;
  if (isArchived || (retentionDays !== undefined && since + retentionDays * DAY_MS <= now)) return NOTHING;
  const at = new Date(since).toISOString();
  const why = retentionDays === undefined ? 'is not set' : `is ${retentionDays}, and the journal has its send of ${at}`;
  const message = `the ledger says that it was removed as ${state}; PAYOUT_RETENTION_DAYS ${why}, and no archive of this host has it`;
  return one(send, 'removed', message, REMOVED);
}

export function toUnreadable(payoutId: string, message: string): Finding {
  return findingOf({ payoutId }, 'unreadable', message, ALTERED);
}

const NOTHING: SendComparison = { findings: [] };

function one(send: JournalEntry, kind: FindingKind, message: string, action: string): SendComparison {
  return { findings: [findingOf(send, kind, message, action)] };
}

const SENT_FIELDS = ['paymentId', 'amount', 'addressTo', 'symbol'] as const;

function findAltered({ request }: JournalEntry, payout: Payout): string | undefined {
  const differing = SENT_FIELDS.filter((field) => request[field] !== payout[field]);
  if (differing.length === 0) return undefined;
  return differing
    .map(
      (field) =>
        `${field} was ${String(request[field] ?? 'none')} when it was sent, and is ${String(payout[field] ?? 'none')} in the ledger`,
    )
    .join('; ');
}

const WITH_TRANSACTION: ReadonlySet<PayoutState> = new Set(['in_progress', 'completed', 'failed']);

type OutcomeKind = 'accepted' | 'rejected' | 'unknown' | 'not_sent';

/**
 * Possible states by the last attempt's outcome. `sending` always is: the outcome is journaled first. An operator's
 * transaction adds the states with one.
 */
const POSSIBLE: Readonly<Record<OutcomeKind, ReadonlySet<PayoutState>>> = {
  accepted: new Set(['sending', 'in_progress', 'completed', 'failed', 'unknown']),
  rejected: new Set(['sending', 'rejected', 'queued', 'held', 'cancelled', 'unknown', 'written_off']),
  unknown: new Set(['sending', 'unknown', 'written_off']),
  not_sent: new Set(['sending', 'queued', 'held', 'cancelled', 'unknown', 'written_off']),
};

/** Where a payout may be that an operator stated as not sent, and that was not sent again. */
const REQUEUED: ReadonlySet<PayoutState> = new Set(['queued', 'held', 'cancelled']);

function compareState(send: JournalEntry, payout: Payout): SendComparison {
  const { outcome } = send;
  const { state, gatewayId, txhash, vouchedGatewayId, requeueCount } = payout;
  const isVouched = isSameGatewayId(vouchedGatewayId, gatewayId);
  const hasTransaction = WITH_TRANSACTION.has(state);
  if (hasTransaction && isVouched) return { findings: [], isOnWord: true };
  if (outcome?.kind === 'accepted' && hasTransaction) {
    if (!isSameGatewayId(gatewayId, outcome.gatewayId)) {
      const message = `the gateway accepted it as ${outcome.gatewayId}; the ledger says ${state} as ${gatewayId ?? 'none'}`;
      return one(send, 'gateway_id', message, ALTERED);
    }
    // Where the gateway's name is the transaction, there can be no other one.
    if (outcome.txhash !== outcome.gatewayId || isSameGatewayId(txhash ?? gatewayId, gatewayId)) return NOTHING;
    const message = `its transaction is ${outcome.txhash}; the ledger says ${state} with txhash ${txhash ?? 'none'}`;
    return one(send, 'gateway_id', message, ALTERED);
  }
  const kind = outcome?.kind ?? 'unknown';
  if (POSSIBLE[kind].has(state)) return NOTHING;
  // An operator stated that it was not sent.
  const isRequeued = kind === 'unknown' && requeueCount > 0 && REQUEUED.has(state);
  if (isRequeued) return { findings: [], isOnWord: true };
  return one(send, 'state', `the journal says ${describeOutcome(send)}; the ledger says ${state}`, LOOK);
}

export function describeOutcome({ outcome }: Pick<JournalEntry, 'outcome'>): string {
  switch (outcome?.kind) {
    case undefined:
      return 'sent, without an outcome';
    case 'accepted':
      return `accepted as ${outcome.gatewayId}`;
    case 'rejected':
      return 'rejected by the gateway';
    case 'unknown':
      return 'sent, without a trustworthy response';
    case 'not_sent':
      return 'not sent after all';
  }
}
