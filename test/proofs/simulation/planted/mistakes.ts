import { type Clock, onAnyClock } from '../../../../src/base/clock.js';
import { RedisUnavailableError } from '../../../../src/base/errors.js';
import type { WithdrawConnection, WithdrawGateway } from '../../../../src/gateway/gateway.js';
import type { AccountJournal } from '../../../../src/journal/control-journal.js';
import type { BeginSend, SendAttempt, SenderView } from '../../../../src/ledger/sender-ledger.js';
import { type Pace, Pacer } from '../../../../src/worker/sender/pacer.js';
import type { WorkerLedger } from '../../../world/links.js';
import { type PieceContext, type Pieces, soundPieces } from '../../../world/worker.js';
import { putPayout, setFields, WorldLedger } from '../../../world/world-ledger.js';

export type Mistake = Partial<Pieces>;
export type Mistakes = Readonly<Record<string, Mistake>>;

export function plant(name: string | undefined, all = mistakes): Pieces {
  if (name !== undefined && all[name] === undefined) throw new Error(`There is no mistake named ${name}`);
  return { ...soundPieces, ...all[name ?? ''] };
}

export const mistakes: Mistakes = {
  'pacing from the send instead of the response': paceFromTheSend(),
  'pacer not told of sends without a response': withPacer(({ pacer }) => ({
    afterNoResponse: () => {
      pacer.afterResponse();
    },
  })),
  'the network alone is waited for, not the kernel of a host that is cut off': withCalls((ledger, { settings }) => ({
    beginSend: async (begin) => ledger.beginSend({ ...begin, inFlightMs: settings.guardMs + settings.inFlightMaxMs }),
  })),
  'the wait for a request counts from its end, as if its process had to reset it': withCalls(
    (ledger, { settings }) => ({
      beginSend: async (begin) =>
        ledger.beginSend({ ...begin, inFlightMs: settings.withdrawTimeoutMs + settings.inFlightMaxMs }),
    }),
  ),
  'a socket that is closed and not reset': { closesOnly: true },
  'no interval after a probe': withPacer(({ pacer, clock, pace }) => {
    let isProbed = false;
    return {
      afterNoResponse: () => {
        isProbed = true;
        pacer.holdUntil(clock.now() + onAnyClock(pace.inFlightMaxMs));
      },
      afterResponse: () => {
        if (!isProbed) pacer.holdUntil(clock.now() + pace.intervalMs);
        isProbed = false;
      },
    };
  }),
  'awaitingAnswer flag ignored on take-over': withCalls((ledger) => ({
    readSender: async () => ({ ...(await ledger.readSender()), awaitingAnswer: false }),
  })),
  'no guard before the write': { wrapGateway: (gateway, { pacer }) => withMayWrite(gateway, () => () => pacer.isOpen) },
  'resend on timeout': { wrapGateway: resendOnce },
  'lease by expiry': { wrapLedger: expiringLease },
  'absent lease is free': { wrapLedger: freeWhereAbsent },
  'no heartbeat during quarantine': withCalls((ledger, { pacer }) => ({
    renewLease: async (lease) => {
      if (!pacer.isOpen) throw new RedisUnavailableError('not asked');
      return ledger.renewLease(lease);
    },
  })),
  'lease not asked when a send begins': withLedger(({ beginSend, readSender }) => ({
    beginSend: async (begin) => {
      const { lease, sendCount, last } = await readSender();
      return beginSend({ ...begin, lease: lease ?? begin.lease, sendCount, last });
    },
  })),
  'mark after the send': { ...withCalls(beginsLate), wrapJournal: blind },
  'a send that waits for a disk that hangs, and is then written': {
    wrapJournal: (journal, { clock }) => but(journal, { append: appendsAtLast(journal, clock), isStalled: false }),
    wrapGateway: (gateway, { clock }) => withMayWrite(gateway, (mayWrite) => () => waited.has(clock) || mayWrite()),
  },
  'journal not read': { wrapJournal: blind },
  'journal read only at the start': {
    wrapJournal: (journal) => but(journal, { changedByOthers: async () => Promise.resolve(false) }),
  },
  'attempt identified by its epoch': { makeToken: (_, epoch) => `e${epoch}` },
  'send known by the number of its attempt': withLedger(({ findForgottenSends, ledger }) => ({
    findForgottenSends: async <Send extends SendAttempt>(sends: readonly Send[]) => {
      const forgotten = await findForgottenSends(sends);
      return forgotten.filter(({ send }) => Number(ledger.ofPayout(send.payoutId, 'attempt') ?? 0) < send.attempt);
    },
  })),
  'finish without fencing': withLedger(({ ledger }) => ({
    finishSend: async ({ payoutId }, result) => {
      const payout = ledger.payout(payoutId);
      if (payout === undefined) return Promise.resolve({ recorded: false });
      const state = result.kind === 'accepted' ? 'in_progress' : result.kind;
      putPayout(ledger, { ...payout, state, ...(result.kind === 'accepted' && { gatewayId: result.gatewayId }) });
      if (result.kind !== 'unknown') setFields(ledger, ledger.connection.keys.sender, { unanswered: '' });
      return Promise.resolve({ recorded: true });
    },
  })),
  'recovery that requeues sending': withLedger(({ ledger }) => ({
    markSendsUnknown: async (_, attempts) => {
      for (const attempt of attempts) await ledger.revertSend(attempt, 'sent again');
      return [];
    },
  })),
  'stale count of sends accepted, and the journal not asked': {
    ...withLedger(({ beginSend, readSender }) => ({
      beginSend: async (begin) => {
        const { sendCount, last } = await readSender();
        return beginSend({ ...begin, sendCount, last });
      },
    })),
    wrapJournal: (journal) => but(journal, { knows: () => false }),
  },
  'an outcome recorded once and never again': withCalls(recordsOnce),
  'objection as a pause': withLedger(({ ledger }) => ({
    object: async ({ reason }) => {
      await ledger.pause(reason);
    },
  })),
  'adoption by whatever journals are there': { adoptsWithoutProof: true },
  'a statement about an earlier attempt': { statesAnyAttempt: true },
  'a cancellation forgotten at adoption': {
    makeLedger: (options) => Object.assign(new WorldLedger(options), { putBackEnded: async () => Promise.resolve([]) }),
  },
  'not sent, stated while the request may be on its way': withLedger(({ finishSend, markSendsUnknown }) => ({
    finishSend: async (attempt, result, rule) => finishSend(attempt, result, rule, 0),
    markSendsUnknown: async (lease, attempts, reason) => markSendsUnknown(lease, attempts, reason, 0),
  })),
};

const CALLS = ['beginSend', 'finishSend', 'markSendsUnknown', 'findForgottenSends', 'readSender', 'object'] as const;
type LedgerCalls = Pick<WorldLedger, (typeof CALLS)[number]>;

function withLedger(change: (sound: LedgerCalls & { ledger: WorldLedger }) => Partial<LedgerCalls>): Mistake {
  return {
    makeLedger: (options) => {
      const ledger = new WorldLedger(options);
      const sound = Object.fromEntries(CALLS.map((name) => [name, (ledger[name] as () => unknown).bind(ledger)]));
      return Object.assign(ledger, change({ ...(sound as unknown as LedgerCalls), ledger }));
    },
  };
}

function withCalls(change: (ledger: WorkerLedger, context: PieceContext) => Partial<WorkerLedger>): Mistake {
  return { wrapLedger: (ledger, context) => ({ ...ledger, ...change(ledger, context) }) };
}

function withPacer(change: (given: { pacer: Pacer; clock: Clock; pace: Pace }) => Partial<Pacer>): Mistake {
  return {
    makePacer: (clock, pace) => {
      const pacer = new Pacer(clock, pace);
      return Object.assign(pacer, change({ pacer, clock, pace }));
    },
  };
}

function paceFromTheSend(): Mistake {
  const writtenAt = new WeakMap<Pacer, number>();
  return {
    ...withPacer(({ pacer, pace }) => ({
      afterResponse: () => {
        pacer.holdUntil((writtenAt.get(pacer) ?? 0) + pace.intervalMs);
      },
    })),
    wrapGateway: (gateway, { pacer, clock }) =>
      withMayWrite(gateway, (mayWrite) => () => {
        const isAllowed = mayWrite();
        if (isAllowed) writtenAt.set(pacer, clock.now());
        return isAllowed;
      }),
  };
}

type Withdraw = WithdrawConnection['withdraw'];

export function wrapWithdraw(gateway: WithdrawGateway, wrap: (withdraw: Withdraw) => Withdraw): WithdrawGateway {
  return but(gateway, {
    openConnection: async (signal) => {
      const connection = await gateway.openConnection(signal);
      return but(connection, { withdraw: wrap(async (...args) => connection.withdraw(...args)) });
    },
  });
}

function withMayWrite(gateway: WithdrawGateway, change: (mayWrite: () => boolean) => () => boolean): WithdrawGateway {
  return wrapWithdraw(
    gateway,
    (withdraw) =>
      async (request, { mayWrite, ...options }) =>
        withdraw(request, { mayWrite: change(mayWrite), ...options }),
  );
}

function resendOnce(gateway: WithdrawGateway): WithdrawGateway {
  return wrapWithdraw(gateway, (withdraw) => async (request, options) => {
    const outcome = await withdraw(request, options);
    if (outcome.kind !== 'unknown') return outcome;
    const again = await gateway.openConnection(new AbortController().signal);
    return again.withdraw(request, { ...options, mayWrite: () => true });
  });
}

const FREE = { owner: '', epoch: 0, heartbeat: 0, released: true };
type Lease = SenderView['lease'];

function seenAs(ledger: WorkerLedger, look: (lease: Lease) => Lease): WorkerLedger {
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

const heartbeatsOf = new WeakMap<WorldLedger, Map<string, number>>();

function expiringLease(ledger: WorkerLedger, { clock, settings, ledgerOfRun }: PieceContext): WorkerLedger {
  const heartbeats = heartbeatsOf.get(ledgerOfRun) ?? new Map<string, number>();
  heartbeatsOf.set(ledgerOfRun, heartbeats);
  let looks = 0;
  const view = seenAs(ledger, (lease) => {
    if (lease === undefined) return FREE;
    const lastAt = heartbeats.get(lease.owner);
    const expired = lastAt === undefined || clock.wallNow() - lastAt > settings.leaseMs;
    return { ...lease, heartbeat: (looks += 1), released: lease.released || expired };
  });
  return {
    ...view,
    acquireLease: async (owner, ...rest) => {
      heartbeats.set(owner, clock.wallNow());
      return view.acquireLease(owner, ...rest);
    },
    renewLease: async (lease) => {
      heartbeats.set(lease.owner, clock.wallNow());
      return ledger.renewLease(lease);
    },
  };
}

function freeWhereAbsent(ledger: WorkerLedger): WorkerLedger {
  let wasAbsent = false;
  const view = seenAs(ledger, (lease) => lease ?? FREE);
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

function beginsLate(ledger: WorkerLedger): Partial<WorkerLedger> {
  let pending: BeginSend | undefined;
  return {
    beginSend: async (begin) => {
      const payout = await ledger.readPayout(begin.payoutId);
      if (payout?.state !== 'queued')
        return { kind: 'wrong_state', state: payout?.state, attempt: payout?.attempt ?? 0 };
      pending = begin;
      return { kind: 'begun', sendCount: begin.sendCount + 1, acts: begin.acts, isIndexed: true };
    },
    finishSend: async (...args) => {
      if (pending !== undefined) await ledger.beginSend(pending);
      pending = undefined;
      return ledger.finishSend(...args);
    },
  };
}

const waited = new WeakSet<Clock>();

/** Reads it again: the type checker assumes that a value from before an `await` still holds. */
const isStalled = (journal: AccountJournal) => journal.isStalled;

function appendsAtLast(journal: AccountJournal, clock: Clock): AccountJournal['append'] {
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

function blind(journal: AccountJournal): AccountJournal {
  const changedByOthers = async () => Promise.resolve(false);
  return but(journal, { ledger: undefined, knows: () => false, lastSends: () => [], changedByOthers });
}

export function but<Piece extends object>(piece: Piece, changes: Partial<Piece>): Piece {
  return new Proxy(piece, {
    get: (target, name) => {
      if (name in changes) return changes[name as keyof Piece];
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}

function recordsOnce(ledger: WorkerLedger): Partial<WorkerLedger> {
  const recorded = new Set<string>();
  return {
    finishSend: async (attempt, ...rest) => {
      if (recorded.has(attempt.token)) return { recorded: false };
      const reply = await ledger.finishSend(attempt, ...rest);
      recorded.add(attempt.token);
      return reply;
    },
  };
}
