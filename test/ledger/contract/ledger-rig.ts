import { TEST_AUDIENCE } from '../../control/support/keys.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { Hold, NewPayout } from '../../../src/ledger/payout.js';
import type { AdoptedPayout, RaisedLedger, SendToAdopt } from '../../../src/ledger/adopt-ledger.js';
import type {
  BeginSend,
  BreakerRule,
  KnownJournal,
  Lease,
  Objection,
  SendAttempt,
  SenderLedger,
} from '../../../src/ledger/sender-ledger.js';

/** `state` and `txhash` name what stood in the way. */
export type ChangeOutcome = 'done' | 'not_found' | 'state' | 'attempt' | 'txhash' | 'lateTxhash';

/** What came of an approval that someone gave to the ledger. */
export type ApprovalOutcome = 'kept' | 'not_found' | 'refused';

/** The journal of most tests. */
export const JOURNAL: KnownJournal = {
  journalId: 'j-one',
  host: 'host-1',
  dir: '/journal',
  sends: 0,
  token: '',
  at: 0,
};

/** A ledger under test, and what applications and operators do to it while a sender works. */
export interface LedgerRig {
  readonly ledger: SenderLedger;
  enqueue(payoutId: string, given?: Pick<NewPayout, 'signed'>): Promise<void>;
  change(change: StateChange): Promise<ChangeOutcome>;
  pause(reason: string): Promise<boolean>;
  approve(approval: SignedApproval): Promise<ApprovalOutcome>;
  /** @returns the payouts of which someone said something, in any order */
  marked(): Promise<readonly string[]>;
  /** An operator binds it to another gateway. */
  bind(audience: string): Promise<unknown>;
  /** @param act - the signed act, as JSON */
  resume(act?: string): Promise<boolean | 'objected'>;
  /**
   * @param doubtMs - for how long the request may be on its way; 0 where nothing is said
   * @returns the payout, where it was changed
   */
  adoptSend(send: SendAttempt, outcome?: SendToAdopt['outcome'], doubtMs?: number): Promise<AdoptedPayout | undefined>;
  adoptLedger(
    highest: { epoch: number; sendCount: number },
    journals?: { read: readonly KnownJournal[]; givenUp: readonly string[] },
    act?: string,
  ): Promise<RaisedLedger>;
  /** @returns how many queued, held or rejected payouts became `unknown` */
  holdSendable(): Promise<number>;
  /** Takes the lease, and all that stands beside it, out of the ledger. */
  loseSender(): Promise<void>;
  /** Moves the date that the ledger writes. */
  advance(ms: number): void;
  close(): Promise<void>;
}

/** Why the payouts of most tests are held. */
export const HOLD: Hold = {
  kind: 'signature',
  reason: 'expired',
  message: 'the signature expired',
  isTampering: false,
};

/** What another journal says against the ledger. */
export const OBJECTION: Objection = {
  journalId: 'j-two',
  kind: 'ledger',
  reason: 'it forgot a send',
  host: 'host-2',
  dir: '/journal',
  sends: 7,
  at: Date.parse('2030-01-01T00:00:00Z'),
};

/** A breaker that never trips. */
export const NO_BREAKER: BreakerRule = { maxRejectionsInARow: 1_000, maxUnknownsInARow: 1_000 };

/** Which gateway's payments the sends of the contract are. */
export const AUDIENCE = TEST_AUDIENCE;

/** Takes the lease as it stands. */
export async function takeLease(ledger: SenderLedger, owner: string): Promise<Lease> {
  const epoch = await ledger.acquireLease(owner, await ledger.readSender(), JOURNAL, 0);
  if (epoch === undefined) throw new Error(`${owner} did not get the lease`);
  return { owner, epoch };
}

/** What a holder who knows everything would ask for. */
export async function nextBegin(ledger: SenderLedger, lease: Lease, payoutId: string): Promise<BeginSend> {
  const { ledgerId, sendCount, last } = await ledger.readSender();
  const { attempt: before = 0, decisions = 0 } = (await ledger.readPayout(payoutId)) ?? {};
  const attempt = before + 1;
  // The same on every ledger that has seen the same, so that two can be compared.
  const token = `${lease.owner}.${lease.epoch}.${sendCount}.${payoutId}.${attempt}`.replace(/[^\w.:-]/g, '_');
  return {
    lease,
    audience: AUDIENCE,
    heartbeat: 0,
    ledgerId,
    sendCount,
    last,
    payoutId,
    attempt,
    token,
    journal: JOURNAL,
    inFlightMs: 500,
    decisions,
  };
}

/** Begins a payout that can be begun. */
export async function begin(ledger: SenderLedger, lease: Lease, payoutId: string): Promise<SendAttempt> {
  const asked = await nextBegin(ledger, lease, payoutId);
  const result = await ledger.beginSend(asked);
  if (result.kind !== 'begun') throw new Error(`${payoutId} did not begin: ${JSON.stringify(result)}`);
  return { payoutId, attempt: asked.attempt, token: asked.token };
}
