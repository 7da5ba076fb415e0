import type { SendJournal } from '../../../src/worker/send-journal.js';
import type { BeginSend } from '../../../src/ledger/sender-ledger.js';
import type { WorkerLedger } from '../ledger-link.js';
import { MemoryLedger } from '../memory-ledger.js';
import type { Mistake } from './mistake.js';

export const recordMistakes: readonly Mistake[] = [
  {
    name: 'mark after the send',
    pieces: { wrapLedger: beginsLate, wrapJournal: (journal) => blind(journal) },
  },
  { name: 'journal not read', pieces: { wrapJournal: (journal) => blind(journal) } },
  {
    name: 'journal read only at the start',
    pieces: { wrapJournal: (journal) => but(journal, { changedByOthers: async () => Promise.resolve(false) }) },
  },
  { name: 'finish without fencing', pieces: { makeLedger: (options) => new LedgerThatBelievesAnybody(options) } },
  { name: 'recovery that requeues sending', pieces: { makeLedger: (options) => new LedgerThatRequeues(options) } },
  {
    name: 'stale count of sends accepted, and the journal not asked',
    pieces: {
      makeLedger: (options) => new LedgerThatForgetsSilently(options),
      wrapJournal: (journal) => but(journal, { knows: () => false }),
    },
  },
  {
    name: 'an outcome recorded once and never again',
    pieces: { wrapLedger: recordsOnce },
  },
];

/** Tells the sender that its attempt has begun, and the ledger only when it has ended. */
function beginsLate(ledger: WorkerLedger): WorkerLedger {
  let pending: BeginSend | undefined;
  return {
    ...ledger,
    beginSend: async (begin) => {
      const payout = await ledger.readPayout(begin.payoutId);
      if (payout?.state !== 'queued')
        return { kind: 'wrong_state', state: payout?.state, attempt: payout?.attempt ?? 0 };
      pending = begin;
      return { kind: 'begun', sends: begin.sends + 1 };
    },
    finishSend: async (attempt, result, rule) => {
      if (pending !== undefined) await ledger.beginSend(pending);
      pending = undefined;
      return ledger.finishSend(attempt, result, rule);
    },
  };
}

/** A journal that is written and never looked at. */
function blind(journal: SendJournal): SendJournal {
  return but(journal, {
    ledger: undefined,
    knows: () => false,
    lastSends: () => [],
    changedByOthers: async () => Promise.resolve(false),
  });
}

function but(journal: SendJournal, changes: Partial<SendJournal>): SendJournal {
  return new Proxy(journal, {
    get: (target, name: keyof SendJournal) => {
      if (name in changes) return changes[name];
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}

function recordsOnce(ledger: WorkerLedger): WorkerLedger {
  const recorded = new Set<string>();
  return {
    ...ledger,
    finishSend: async (attempt, result, rule) => {
      const key = `${attempt.payoutId} ${attempt.attempt}`;
      if (recorded.has(key)) return { recorded: false };
      const reply = await ledger.finishSend(attempt, result, rule);
      recorded.add(key);
      return reply;
    },
  };
}

/** Writes a result down whichever attempt it is of, and whatever has become of the payout since. */
class LedgerThatBelievesAnybody extends MemoryLedger {
  override async finishSend(
    ...[{ payoutId, epoch }, result]: Parameters<MemoryLedger['finishSend']>
  ): ReturnType<MemoryLedger['finishSend']> {
    const all = this.snapshot();
    const payout = all.book.get(payoutId)?.payout;
    if (payout === undefined) return Promise.resolve({ recorded: false });
    const state = result.kind === 'accepted' ? 'in_progress' : result.kind;
    all.book.add({ ...payout, state }, { epoch });
    if (result.kind === 'accepted') all.book.setTxhash(payoutId, result.txhash);
    this.restore({ ...all, unanswered: result.kind === 'unknown' ? all.unanswered : '' });
    return Promise.resolve({ recorded: true });
  }
}

/** Puts what an earlier sender left behind back into the queue. */
class LedgerThatRequeues extends MemoryLedger {
  override async recoverSends(
    ...[lease]: Parameters<MemoryLedger['recoverSends']>
  ): ReturnType<MemoryLedger['recoverSends']> {
    const { book } = this.snapshot();
    for (const payoutId of book.idsIn('sending')) {
      const entry = book.get(payoutId);
      if (entry?.epoch === undefined || entry.epoch === lease.epoch) continue;
      await this.revertSend({ payoutId, attempt: entry.payout.attempt, epoch: entry.epoch }, 'sent again');
    }
    return [];
  }
}

/** Does not hold the sender's count of sends against its own. */
class LedgerThatForgetsSilently extends MemoryLedger {
  override async beginSend(begin: BeginSend): ReturnType<MemoryLedger['beginSend']> {
    const { sends } = await this.readSender();
    return super.beginSend({ ...begin, sends });
  }
}
