import { TEST_AUDIENCE } from '../../control/support/keys.js';
import type { Hold } from '../../../src/ledger/payout.js';
import type {
  BeginSend,
  BreakerRule,
  KnownJournal,
  Lease,
  Objection,
  SendAttempt,
  SenderLedger,
} from '../../../src/ledger/sender-ledger.js';

export const JOURNAL: KnownJournal = {
  journalId: 'j-one',
  host: 'host-1',
  dir: '/journal',
  sends: 0,
  token: '',
  at: 0,
};

export const HOLD: Hold = {
  ...{ kind: 'signature', reason: 'expired', message: 'the signature expired', isTampering: false },
};

export const OBJECTION: Objection = {
  ...{ journalId: 'j-two', kind: 'ledger', reason: 'it forgot a send', host: 'host-2', dir: '/journal', sends: 7 },
  at: Date.parse('2030-01-01T00:00:00Z'),
};

export const NO_BREAKER: BreakerRule = { maxRejectionsInARow: 1_000, maxUnknownsInARow: 1_000 };

export const AUDIENCE = TEST_AUDIENCE;

export async function takeLease(ledger: SenderLedger, owner: string): Promise<Lease> {
  const epoch = await ledger.acquireLease(owner, await ledger.readSender(), JOURNAL, 0);
  if (epoch === undefined) throw new Error(`${owner} did not get the lease`);
  return { owner, epoch };
}

/** What a holder who knows everything would ask for. */
export async function nextBegin(ledger: SenderLedger, lease: Lease, payoutId: string): Promise<BeginSend> {
  const { ledgerId, sendCount, last, acts } = await ledger.readSender();
  const { attempt: before = 0, decisions = 0 } = (await ledger.readPayout(payoutId)) ?? {};
  const attempt = before + 1;
  // The same on every ledger that has seen the same, so that two can be compared.
  const token = `${lease.owner}.${lease.epoch}.${sendCount}.${payoutId}.${attempt}`.replace(/[^\w.:-]/g, '_');
  const given = { lease, audience: AUDIENCE, heartbeat: 0, journal: JOURNAL, inFlightMs: 500 };
  return { ...given, ledgerId, sendCount, last, acts, payoutId, attempt, token, decisions };
}

export async function begin(ledger: SenderLedger, lease: Lease, payoutId: string): Promise<SendAttempt> {
  const asked = await nextBegin(ledger, lease, payoutId);
  const result = await ledger.beginSend(asked);
  if (result.kind !== 'begun') throw new Error(`${payoutId} did not begin: ${JSON.stringify(result)}`);
  return { payoutId, attempt: asked.attempt, token: asked.token };
}
