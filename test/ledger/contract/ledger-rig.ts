import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type {
  BeginSend,
  BreakerRule,
  Lease,
  SendAttempt,
  SenderLedger,
  SendResult,
} from '../../../src/ledger/sender-ledger.js';

/** `state` and `txhash` name what stood in the way. */
export type ChangeOutcome = 'done' | 'not_found' | 'state' | 'txhash';

/** A ledger under test, and what applications and people do to it while a sender works. */
export interface LedgerRig {
  readonly ledger: SenderLedger;
  enqueue(payoutId: string): Promise<void>;
  change(change: StateChange): Promise<ChangeOutcome>;
  pause(reason: string): Promise<boolean>;
  resume(): Promise<boolean>;
  /** @returns whether the payout became `unknown` */
  adoptSend(send: SendAttempt): Promise<boolean>;
  adoptLedger(highest: { epoch: number; sends: number }): Promise<{ epoch: number; sends: number }>;
  /** Takes the lease, and all that stands beside it, out of the ledger. */
  loseSender(): Promise<void>;
  /** Moves the date that the ledger writes. */
  advance(ms: number): void;
  /** Everything that the ledger holds, in any form that can be compared. */
  dump(): Promise<unknown>;
  close(): Promise<void>;
}

/** Gives the rig of the running test. */
export type GetRig = () => LedgerRig;

/** A breaker that never trips. */
export const NO_BREAKER: BreakerRule = { maxRejectionsInARow: 1_000, maxUnknownsInARow: 1_000 };

/** Takes the lease as it stands. */
export async function takeLease(ledger: SenderLedger, owner: string): Promise<Lease> {
  const { lease } = await ledger.readSender();
  const epoch = await ledger.acquireLease(owner, lease);
  if (epoch === undefined) throw new Error(`${owner} did not get the lease`);
  return { owner, epoch };
}

/** What a holder who knows everything would ask for. */
export async function nextBegin(ledger: SenderLedger, lease: Lease, payoutId: string): Promise<BeginSend> {
  const { ledgerId, sends } = await ledger.readSender();
  const payout = await ledger.readPayout(payoutId);
  return { lease, ledgerId, sends, payoutId, attempt: (payout?.attempt ?? 0) + 1 };
}

/** Begins a payout that can be begun. */
export async function begin(ledger: SenderLedger, lease: Lease, payoutId: string): Promise<SendAttempt> {
  const asked = await nextBegin(ledger, lease, payoutId);
  const result = await ledger.beginSend(asked);
  if (result.kind !== 'begun') throw new Error(`${payoutId} did not begin: ${JSON.stringify(result)}`);
  return { payoutId, attempt: asked.attempt, epoch: lease.epoch };
}

/** Enqueues, begins and finishes one payout. */
export async function send(
  rig: LedgerRig,
  lease: Lease,
  { payoutId, result, rule = NO_BREAKER }: { payoutId: string; result: SendResult; rule?: BreakerRule },
): Promise<{ attempt: SendAttempt; pausedReason: string | undefined }> {
  await rig.enqueue(payoutId);
  const attempt = await begin(rig.ledger, lease, payoutId);
  const { recorded, pausedReason } = await rig.ledger.finishSend(attempt, result, rule);
  if (!recorded) throw new Error(`the result of ${payoutId} was not recorded`);
  return { attempt, pausedReason };
}
