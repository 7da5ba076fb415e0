import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { LedgerCall, type LedgerLinkOptions } from './ledger-call.js';
import type { WorldLedger } from '../../world/world-ledger.js';

/** What the worker asks: the sender's calls, and which payouts wait (in production BullMQ knows that). */
export interface WorkerLedger extends SenderLedger {
  queued(): Promise<readonly string[]>;
}

/** A process's connection to the simulated Redis: commands and replies are late or lost, and may overtake each other. */
export function linkLedger(options: LedgerLinkOptions): WorkerLedger {
  const { attacker } = options;
  const call = async <Reply>(
    name: string,
    about: string,
    run: (ledger: WorldLedger) => Promise<Reply>,
    onWay?: (reply: Reply) => Reply,
  ): Promise<Reply> => new LedgerCall(options, name, about, run, onWay).start();
  return {
    readSender: async () => call('readSender', '', async (ledger) => ledger.readSender()),
    acquireLease: async (owner, seen, ...rest) =>
      call('acquireLease', owner, async (ledger) => ledger.acquireLease(owner, seen, ...rest)),
    renewLease: async (lease) => call('renewLease', lease.owner, async (ledger) => ledger.renewLease(lease)),
    releaseLease: async (lease) => call('releaseLease', lease.owner, async (ledger) => ledger.releaseLease(lease)),
    readPayout: async (payoutId) =>
      call(
        'readPayout',
        payoutId,
        async (ledger) => ledger.readPayout(payoutId),
        attacker && ((payout) => attacker.forge(payout)),
      ),
    findForgottenSends: async (sends) =>
      call('findForgottenSends', '', async (ledger) => ledger.findForgottenSends(sends)),
    beginSend: async (begin) =>
      call('beginSend', `${begin.payoutId} ${begin.attempt}`, async (ledger) => ledger.beginSend(begin)),
    holdPayout: async (payoutId, attempt, hold) =>
      call('holdPayout', `${payoutId} ${hold.reason}`, async (ledger) => ledger.holdPayout(payoutId, attempt, hold)),
    findSignedBefore: async (time) => call('findSignedBefore', '', async (ledger) => ledger.findSignedBefore(time)),
    readSpends: async () => call('readSpends', '', async (ledger) => ledger.readSpends()),
    revertSend: async (attempt, reason) =>
      call('revertSend', `${attempt.payoutId} ${attempt.attempt}`, async (ledger) =>
        ledger.revertSend(attempt, reason),
      ),
    finishSend: async (attempt, result, rule, doubtMs) =>
      call('finishSend', `${attempt.payoutId} ${attempt.attempt} ${result.kind}`, async (ledger) =>
        ledger.finishSend(attempt, result, rule, doubtMs),
      ),
    readSending: async () => call('readSending', '', async (ledger) => ledger.readSending()),
    markSendsUnknown: async (lease, attempts, reason, doubtMs) =>
      call('markSendsUnknown', attempts.map(({ payoutId }) => payoutId).join(' '), async (ledger) =>
        ledger.markSendsUnknown(lease, attempts, reason, doubtMs),
      ),
    object: async (objection) => call('object', objection.reason, async (ledger) => ledger.object(objection)),
    queued: async () => call('queued', '', async (ledger) => Promise.resolve(ledger.idsIn('queued'))),
  };
}
