import type { Clock } from '../../../../src/base/clock.js';
import type { WithdrawGateway } from '../../../../src/gateway/gateway.js';
import type { SendJournal } from '../../../../src/journal/send-journal.js';
import type { BeginSend, ForgottenSend, SendAttempt } from '../../../../src/ledger/sender-ledger.js';
import type { WorkerLedger } from '../../../world/ledger-link.js';
import { putPayout, setFields } from '../../../world/tamper.js';
import { WorldLedger } from '../../../world/world-ledger.js';
import type { Mistake } from './mistake.js';

export const recordMistakes: readonly Mistake[] = [
  {
    name: 'mark after the send',
    pieces: { wrapLedger: beginsLate, wrapJournal: (journal) => blind(journal) },
  },
  {
    name: 'a send that waits for a disk that hangs, and is then written',
    pieces: {
      wrapJournal: (journal, { clock }) => but(journal, { append: appendsAtLast(journal, clock), isStalled: false }),
      wrapGateway: (gateway, { clock }) => writesWhatWaited(gateway, clock),
    },
  },
  { name: 'journal not read', pieces: { wrapJournal: (journal) => blind(journal) } },
  {
    name: 'journal read only at the start',
    pieces: { wrapJournal: (journal) => but(journal, { changedByOthers: async () => Promise.resolve(false) }) },
  },
  { name: 'attempt identified by its epoch', pieces: { makeToken: (_, epoch) => `e${epoch}` } },
  {
    name: 'send known by the number of its attempt',
    pieces: { makeLedger: (options) => new LedgerThatKnowsNumbers(options) },
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
  { name: 'objection as a pause', pieces: { makeLedger: (options) => new LedgerThatPauses(options) } },
  { name: 'adoption by whatever journals are there', pieces: { adoptsWithoutProof: true } },
  {
    name: 'not sent, stated while the request may be on its way',
    pieces: { makeLedger: (options) => new LedgerWithoutDoubt(options) },
  },
];

/** Reports to the sender that its attempt has begun, and to the ledger only when it has ended. */
function beginsLate(ledger: WorkerLedger): WorkerLedger {
  let pending: BeginSend | undefined;
  return {
    ...ledger,
    beginSend: async (begin) => {
      const payout = await ledger.readPayout(begin.payoutId);
      if (payout?.state !== 'queued')
        return { kind: 'wrong_state', state: payout?.state, attempt: payout?.attempt ?? 0 };
      pending = begin;
      return { kind: 'begun', sendCount: begin.sendCount + 1 };
    },
    finishSend: async (...args) => {
      if (pending !== undefined) await ledger.beginSend(pending);
      pending = undefined;
      return ledger.finishSend(...args);
    },
  };
}

/** Clocks of the processes whose present send waited for its disk. */
const waited = new WeakSet<Clock>();

/** Reads it again: the type checker assumes that a value from before an `await` still holds. */
const isStalled = (journal: SendJournal): boolean => journal.isStalled;

function appendsAtLast(journal: SendJournal, clock: Clock): SendJournal['append'] {
  return async (send) => {
    waited.delete(clock);
    for (;;) {
      try {
        await journal.append(send);
        return;
      } catch (error) {
        if (!journal.isStalled) throw error;
        waited.add(clock);
        while (isStalled(journal)) await clock.sleep(100);
        if (journal.knows(send.payoutId, send.attempt)) return;
      }
    }
  };
}

function writesWhatWaited(gateway: WithdrawGateway, clock: Clock): WithdrawGateway {
  return {
    ...gateway,
    openConnection: async (stop) => {
      const connection = await gateway.openConnection(stop);
      return {
        get usable() {
          return connection.usable;
        },
        withdraw: async (request, { mayWrite }) =>
          connection.withdraw(request, { mayWrite: () => waited.has(clock) || mayWrite() }),
        close: () => {
          connection.close();
        },
      };
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

/** A journal with some of its answers exchanged. */
export function but(journal: SendJournal, changes: Partial<SendJournal>): SendJournal {
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
    finishSend: async (attempt, ...rest) => {
      if (recorded.has(attempt.token)) return { recorded: false };
      const reply = await ledger.finishSend(attempt, ...rest);
      recorded.add(attempt.token);
      return reply;
    },
  };
}

/** Takes a number that another timeline used for the send itself. */
class LedgerThatKnowsNumbers extends WorldLedger {
  override async findForgottenSends<Send extends SendAttempt>(
    sends: readonly Send[],
  ): Promise<readonly ForgottenSend<Send>[]> {
    const forgotten = await super.findForgottenSends(sends);
    return forgotten.filter(({ send }) => Number(this.ofPayout(send.payoutId, 'attempt') ?? 0) < send.attempt);
  }
}

/** Writes a result down whichever attempt it is of, and whatever has become of the payout since. */
class LedgerThatBelievesAnybody extends WorldLedger {
  override async finishSend(
    ...[{ payoutId }, result]: Parameters<WorldLedger['finishSend']>
  ): ReturnType<WorldLedger['finishSend']> {
    const payout = this.payout(payoutId);
    if (payout === undefined) return Promise.resolve({ recorded: false });
    const state = result.kind === 'accepted' ? 'in_progress' : result.kind;
    putPayout(this, { ...payout, state, ...(result.kind === 'accepted' && { txhash: result.txhash }) });
    if (result.kind !== 'unknown') setFields(this, this.connection.keys.sender, { unanswered: '' });
    return Promise.resolve({ recorded: true });
  }
}

/** Puts what an earlier sender left behind back into the queue. */
class LedgerThatRequeues extends WorldLedger {
  override async markSendsUnknown(
    ...[, attempts]: Parameters<WorldLedger['markSendsUnknown']>
  ): ReturnType<WorldLedger['markSendsUnknown']> {
    for (const attempt of attempts) await this.revertSend(attempt, 'sent again');
    return [];
  }
}

/** Does not hold the line of sends against what the sender knows of it. */
class LedgerThatForgetsSilently extends WorldLedger {
  override async beginSend(begin: BeginSend): ReturnType<WorldLedger['beginSend']> {
    const { sendCount, last } = await this.readSender();
    return super.beginSend({ ...begin, sendCount, last });
  }
}

/** Lets an operator resume what a journal objects to. */
class LedgerThatPauses extends WorldLedger {
  override async object(...[{ reason }]: Parameters<WorldLedger['object']>): ReturnType<WorldLedger['object']> {
    await this.pause(reason);
  }
}

/** Does not know for how long a request may be on its way. */
class LedgerWithoutDoubt extends WorldLedger {
  override async finishSend(
    ...[attempt, result, rule]: Parameters<WorldLedger['finishSend']>
  ): ReturnType<WorldLedger['finishSend']> {
    return super.finishSend(attempt, result, rule, 0);
  }

  override async markSendsUnknown(
    ...[lease, attempts, reason]: Parameters<WorldLedger['markSendsUnknown']>
  ): ReturnType<WorldLedger['markSendsUnknown']> {
    return super.markSendsUnknown(lease, attempts, reason, 0);
  }
}
