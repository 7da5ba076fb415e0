import { errorCode, UnreadableRecordError } from '../../base/errors.js';
import { JournalDamagedError } from '../../journal/send-journal.js';
import { findFault, type Hold, type Payout } from '../../ledger/payout.js';
import { holdForGood, holdPayout } from './hold-payout.js';
import type { KeptPause } from './kept-pause.js';
import type { HeldLease } from './lease-keeper.js';
import type { LedgerCheck } from './ledger-check.js';
import { reportMismatch, type SendRecovery } from './recover-sends.js';
import type { GrantedSend } from './send-authority.js';
import type { SendReport } from './send-report.js';
import type { SenderRuntime } from './sender-runtime.js';

/** What the checks ask: the same for all payouts of a lease. */
export interface CheckContext {
  readonly runtime: SenderRuntime;
  readonly heldLease: HeldLease;
  readonly check: LedgerCheck;
  readonly recovery: SendRecovery;
  /** Undefined if pauses are not kept in the journal. */
  readonly pause: KeptPause | undefined;
}

/** A payout that may be sent, and what the checks found out about it. */
export class Candidate {
  readonly payoutId: string;
  /** Of the last check of the authority; undefined without one. */
  permit: GrantedSend | undefined;
  #payout: Payout | undefined;
  #passed: Turn | undefined;

  constructor(payoutId: string) {
    this.payoutId = payoutId;
  }

  /** As read from the ledger: this very object is checked and sent. */
  get payout(): Payout {
    if (this.#payout === undefined) throw new Error(`payout ${this.payoutId} was checked before it was read`);
    return this.#payout;
  }

  set payout(payout: Payout) {
    this.#payout = payout;
  }

  /** The last run of the checks, if all of them passed. */
  get passed(): Turn | undefined {
    return this.#passed;
  }

  set passed(turn: Turn | undefined) {
    this.#passed = turn;
  }
}

/** @returns why it is not sent now; undefined if the check passed */
type Find = (context: CheckContext, candidate: Candidate) => Promise<SendReport | undefined> | SendReport | undefined;

interface SendCheck {
  /** What must be true. */
  readonly name: string;
  readonly reason: string;
  readonly find: Find;
  /** Run right before the begin, when time has passed and the connection is open. */
  readonly again?: Find;
}

/**
 * What must be true before a payout is sent, in this order. All of it is checked before the connection, and a part again
 * before the begin. The script `begin-send` then checks lease, pause and objections in Redis itself.
 */
export const SEND_CHECKS: readonly SendCheck[] = [
  {
    name: 'the send journal can be written',
    reason: 'a full disk is found before the ledger changes',
    async find({ runtime: { journal } }) {
      try {
        await journal.ensureWritable();
        return undefined;
      } catch (error) {
        const reason = (error as Error).message;
        return error instanceof JournalDamagedError
          ? reportMismatch({ kind: 'journal', reason })
          : { kind: 'not_sent', reason, code: errorCode(error) };
      }
    },
  },
  {
    name: 'journal and ledger agree on what others wrote to the journal',
    reason: 'an entry of another process means that it is the sender; what operators write takes effect at once',
    find: compareJournal,
    again: compareJournal,
  },
  {
    name: 'Redis keeps its writes',
    reason: 'a failover must not forget the begin',
    find: findHindrance,
    again: findHindrance,
  },
  {
    name: 'no pause is kept in the journal',
    reason: 'deleting a pause from Redis does not end it; a signed act does',
    async find({ pause }) {
      const reason = await pause?.find();
      return reason === undefined ? undefined : { kind: 'paused', reason };
    },
    again: ({ pause }) => (pause?.reason === undefined ? undefined : { kind: 'paused', reason: pause.reason }),
  },
  {
    name: 'the payout is queued',
    reason: 'its job may come late or twice',
    find: readQueued,
  },
  {
    name: 'the record is a payout',
    reason: 'the gateway would fail each time, and the payouts behind would wait for good: it is held',
    async find({ runtime, heldLease }, { payoutId, payout }) {
      const fault = findFault(payout);
      if (fault === undefined) return undefined;
      return await holdForGood(runtime, heldLease, payoutId, `It can never be sent: ${fault}.`);
    },
  },
  {
    name: 'its `notBefore` has passed',
    reason: 'the job of a date may come early after a clock changed',
    find({ runtime: { clock } }, { payout: { notBefore } }) {
      const due = notBefore === undefined ? -Infinity : Date.parse(notBefore);
      return due > clock.wallNow() ? { kind: 'early', notBefore: due } : undefined;
    },
  },
  {
    name: 'the journal does not know it as sent',
    reason: 'otherwise Redis is an older copy, and everything stops',
    find({ runtime: { journal } }, { payoutId, payout }) {
      if (!journal.knows(payoutId, payout.attempt + 1)) return undefined;
      const reason = `The send journal says that payout ${payoutId} was sent, the ledger says that it was not.`;
      return reportMismatch({ kind: 'ledger', reason });
    },
  },
  {
    name: 'the journal does not know it as ended',
    reason: 'it was cancelled or written off, and Redis came back without that: it is held',
    async find({ runtime, heldLease }, { payoutId, payout }) {
      if (!runtime.journal.hasEnded(payoutId)) return undefined;
      return await holdPayout(runtime, heldLease, payoutId, payout.attempt, ENDED_BEFORE);
    },
  },
  {
    name: 'signatures and policy permit it',
    reason: 'who can write to Redis can make no signature; what they refuse is held',
    find: askAuthority,
    again: askAuthority,
  },
  {
    name: "people's rejections are in the journal",
    reason: 'Redis may forget them',
    async find({ runtime: { authority } }) {
      try {
        await authority?.keepRejections?.();
        return undefined;
      } catch (error) {
        return { kind: 'not_sent', reason: (error as Error).message };
      }
    },
  },
];

/** Before the connection, or before the begin. */
type Turn = 'find' | 'again';

/** @returns the report of the first check that fails */
export async function runSendChecks(
  context: CheckContext,
  candidate: Candidate,
  turn: Turn,
): Promise<SendReport | undefined> {
  candidate.passed = undefined;
  for (const check of SEND_CHECKS) {
    const finding = check[turn]?.(context, candidate);
    // Without a wait nothing else can run between two checks.
    const found = finding instanceof Promise ? await finding : finding;
    if (found !== undefined) return found;
  }
  candidate.passed = turn;
  return undefined;
}

async function compareJournal({ check }: CheckContext): Promise<SendReport | undefined> {
  return await check.compareJournal();
}

function findHindrance({ runtime }: CheckContext): SendReport | undefined {
  const reason = runtime.hindrance();
  return reason === undefined ? undefined : { kind: 'not_sent', reason, code: 'REDIS_UNAVAILABLE' };
}

async function readQueued(context: CheckContext, candidate: Candidate): Promise<SendReport | undefined> {
  const { payoutId } = candidate;
  let found = await readPayout(context, payoutId);
  if (!(found instanceof UnreadableRecordError) && found?.state === 'sending') {
    // The begin's reply may be lost; this process knows that it sent nothing.
    await context.recovery.resolveLeftovers();
    found = await readPayout(context, payoutId);
  }
  if (found instanceof UnreadableRecordError) {
    return await holdForGood(context.runtime, context.heldLease, payoutId, found.message);
  }
  if (found?.state !== 'queued') return { kind: 'skipped', state: found?.state };
  candidate.payout = found;
  return undefined;
}

async function readPayout(
  { runtime }: CheckContext,
  payoutId: string,
): Promise<Payout | UnreadableRecordError | undefined> {
  try {
    return await runtime.senderLedger.readPayout(payoutId);
  } catch (error) {
    if (error instanceof UnreadableRecordError) return error;
    throw error;
  }
}

function askAuthority({ runtime, heldLease }: CheckContext, candidate: Candidate): Promise<SendReport> | undefined {
  const { payoutId, payout } = candidate;
  const permit = runtime.authority?.permit(payout);
  if (permit?.kind === 'refused') return holdPayout(runtime, heldLease, payoutId, payout.attempt, permit.hold);
  candidate.permit = permit;
  return undefined;
}

/** An adoption that brought a send of it back, and a statement that it was not sent, lead here; or a write to Redis. */
const ENDED_BEFORE: Hold = {
  kind: 'journal',
  reason: 'ended_before',
  message:
    'It was cancelled or written off before, says the send journal: cancel it again, which writes it off, because it may have been paid by other means. Only if the gateway and who ended it say that nothing was paid, enqueue it under a new payoutId.',
  isTampering: false,
};
