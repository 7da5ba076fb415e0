import type { StoredSignature } from '../../../src/ledger/control-record.js';
import type { NewPayout, Payout } from '../../../src/ledger/payout.js';
import { FINAL_STATES, UNSENT_STATES, type PayoutState } from '../../../src/ledger/states.js';
import type { LedgerSnapshot } from './ledger-snapshot.js';

const IDENTITY = ['paymentId', 'amount', 'addressTo', 'symbol', 'priority', 'notBefore', 'reference'] as const;

/** As enqueue-payouts.lua, for one payout. @returns false when there is a payout of this id already */
export function enqueuePayout(all: LedgerSnapshot, { signed, ...input }: NewPayout): boolean {
  const { payoutId } = input;
  const there = all.book.get(payoutId)?.payout;
  const signature = signed === undefined ? {} : { signed: withMetadata(signed, input.metadata) };
  if (there === undefined) {
    all.book.add({ ...input, ...signature, state: 'queued', attempt: 0, requeueCount: 0 });
    return true;
  }
  const isSame = IDENTITY.every((field) => there[field] === input[field]) && sameMetadata(there, input);
  if (signature.signed === undefined || !isSame) return false;
  // One that an adoption put in has no signature: the application has it.
  if (there.signed === undefined && there.history[0]?.to !== 'queued') all.book.alter(payoutId, signature);
  if (there.attempt === 0 && isRenewable(there.state)) {
    all.book.alter(payoutId, signature);
    if (there.state === 'held') all.book.move(payoutId, 'queued', { reason: 'signed again' });
  }
  return false;
}

function isRenewable(state: PayoutState): boolean {
  return UNSENT_STATES.includes(state) && !FINAL_STATES.includes(state);
}

function sameMetadata(there: Pick<Payout, 'metadata'>, input: Pick<NewPayout, 'metadata'>): boolean {
  return JSON.stringify(there.metadata) === JSON.stringify(input.metadata);
}

function withMetadata(signed: StoredSignature, metadata: NewPayout['metadata']): StoredSignature {
  return metadata === undefined ? signed : { ...signed, metadata: JSON.stringify(metadata) };
}
