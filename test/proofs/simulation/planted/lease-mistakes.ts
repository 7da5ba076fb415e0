import { RedisUnavailableError } from '../../../../src/base/errors.js';
import type { LeaseView, SenderView } from '../../../../src/ledger/sender-ledger.js';
import type { WorkerLedger } from '../../../world/ledger-link.js';
import { WorldLedger } from '../../../world/world-ledger.js';
import type { PieceContext } from '../../../world/worker.js';
import type { Mistake } from './mistake.js';

/** By owner: when it last had a heartbeat, by its own wall clock. */
const heartbeatsOf = new WeakMap<WorldLedger, Map<string, number>>();

export const leaseMistakes: readonly Mistake[] = [
  { name: 'lease by expiry', pieces: { wrapLedger: expiringLease } },
  { name: 'absent lease is free', pieces: { wrapLedger: freeWhereAbsent } },
  { name: 'no heartbeat during quarantine', pieces: { wrapLedger: silentWhileQuiet } },
  {
    name: 'lease not asked when a send begins',
    pieces: { makeLedger: (options) => new LedgerWithoutFence(options) },
  },
];

/** Trusts the wall clocks of two machines: takes over as soon as the last heartbeat looks old. */
function expiringLease(ledger: WorkerLedger, { clock, settings, ledgerOfRun }: PieceContext): WorkerLedger {
  const heartbeats = heartbeatsOf.get(ledgerOfRun) ?? new Map<string, number>();
  heartbeatsOf.set(ledgerOfRun, heartbeats);
  let looks = 0;
  const view = seenAs(ledger, (lease) => {
    if (lease === undefined) return { owner: '', epoch: 0, heartbeat: 0, released: true };
    const lastAt = heartbeats.get(lease.owner);
    const expired = lastAt === undefined || clock.wallNow() - lastAt > settings.leaseMs;
    // What is not expired never seems to stand still.
    return { ...lease, heartbeat: (looks += 1), released: lease.released || expired };
  });
  return {
    ...view,
    acquireLease: async (owner, seen, ...rest) => {
      heartbeats.set(owner, clock.wallNow());
      return view.acquireLease(owner, seen, ...rest);
    },
    renewLease: async (lease) => {
      heartbeats.set(lease.owner, clock.wallNow());
      return ledger.renewLease(lease);
    },
  };
}

/** Takes a lease that is not there for one whose holder ended in good order, with no request on its way. */
function freeWhereAbsent(ledger: WorkerLedger): WorkerLedger {
  let wasAbsent = false;
  const view = seenAs(ledger, (lease) => lease ?? { owner: '', epoch: 0, heartbeat: 0, released: true });
  return {
    ...view,
    readSender: async () => {
      const sender = await view.readSender();
      return wasAbsent ? { ...sender, awaitingAnswer: false } : sender;
    },
    acquireLease: async (owner, seen, ...rest) => {
      wasAbsent = seen.lease?.owner === '';
      return view.acquireLease(owner, seen, ...rest);
    },
  };
}

/** Shows the keeper another lease than there is, and takes the real one over. */
function seenAs(ledger: WorkerLedger, look: (lease: LeaseView | undefined) => LeaseView | undefined): WorkerLedger {
  let real: SenderView | undefined;
  return {
    ...ledger,
    readSender: async () => {
      real = await ledger.readSender();
      return { ...real, lease: look(real.lease) };
    },
    acquireLease: async (owner, seen, ...rest) => ledger.acquireLease(owner, real ?? seen, ...rest),
  };
}

/** Begins the heartbeat with the first slot. */
function silentWhileQuiet(ledger: WorkerLedger, { pacer }: PieceContext): WorkerLedger {
  return {
    ...ledger,
    renewLease: async (lease) => {
      if (!pacer.isOpen) throw new RedisUnavailableError('not asked');
      return ledger.renewLease(lease);
    },
  };
}

/** Lets anyone begin who once had the lease. */
class LedgerWithoutFence extends WorldLedger {
  override async beginSend(begin: Parameters<WorldLedger['beginSend']>[0]): ReturnType<WorldLedger['beginSend']> {
    const { lease, sendCount, last } = await this.readSender();
    // The line of sends would notice it as well.
    return super.beginSend({ ...begin, lease: lease ?? begin.lease, sendCount, last });
  }
}
