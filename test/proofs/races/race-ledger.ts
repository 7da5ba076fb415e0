import { ConflictError, RedisUnavailableError } from '../../../src/base/errors.js';
import type { PayoutLedger, StateChange } from '../../../src/ledger/payout-ledger.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import type { ChangeOutcome, LedgerRig } from '../../ledger/contract/ledger-rig.js';
import type { RacePlan } from './race-plan.js';
import type { RaceWorld } from './race-world.js';

/**
 * The ledger lets an operator state at once that a payout without a response was not sent: the worst may be stated of it
 * at any time. Truthful operators wait on their own.
 */
const NO_DOUBT_MS = 0;

/** The one ledger of an ordering, whichever it is made of, under watch. */
export class RaceLedger {
  readonly rig: LedgerRig;
  readonly payoutIds: readonly string[];
  readonly #world: RaceWorld;
  readonly #plan: RacePlan;
  #commands = 0;
  /** Since a pause was carried out, until a resume was. */
  #isPaused = false;
  begun = 0;

  constructor(world: RaceWorld, plan: RacePlan, rig: LedgerRig) {
    this.#world = world;
    this.#plan = plan;
    this.rig = rig;
    this.payoutIds = ['p1', 'p2', 'p3'].slice(0, plan.payouts);
  }

  async payouts(): Promise<Payout[]> {
    const found = await Promise.all(this.payoutIds.map(async (payoutId) => this.rig.ledger.readPayout(payoutId)));
    return found.filter((payout) => payout !== undefined);
  }

  /** What a worker sees of it. @param isDead - asked at each command: a dead worker gets no reply any more */
  linkOf(name: string, isDead: () => boolean): SenderLedger & Pick<PayoutLedger, 'get' | 'change'> & QueueView {
    const { ledger } = this.rig;
    const ask = async <Reply>(what: string, run: () => Promise<Reply>): Promise<Reply> =>
      this.#askAsWorker(`${name} ${what}`, run, isDead);
    return {
      readSender: async () => ask('readSender', async () => ledger.readSender()),
      acquireLease: async (...given) => ask('acquireLease', async () => ledger.acquireLease(...given)),
      renewLease: async (lease) => ask('renewLease', async () => ledger.renewLease(lease)),
      releaseLease: async (lease) => ask('releaseLease', async () => ledger.releaseLease(lease)),
      findForgottenSends: async (sends) => ask('findForgottenSends', async () => ledger.findForgottenSends(sends)),
      readPayout: async (payoutId) => ask(`readPayout ${payoutId}`, async () => ledger.readPayout(payoutId)),
      beginSend: async (begin) =>
        ask(`beginSend ${begin.payoutId} ${begin.attempt}`, async () => {
          const reply = await ledger.beginSend(begin);
          if (reply.kind === 'begun') await this.#noteBegun(begin.payoutId);
          return reply;
        }),
      holdPayout: async (payoutId, attempt, hold) =>
        ask(`holdPayout ${payoutId} ${hold.reason}`, async () => ledger.holdPayout(payoutId, attempt, hold)),
      findSignedBefore: async (time) => ask('findSignedBefore', async () => ledger.findSignedBefore(time)),
      readSpends: async () => ask('readSpends', async () => ledger.readSpends()),
      revertSend: async (attempt, reason) =>
        ask(`revertSend ${attempt.payoutId} ${attempt.attempt}`, async () => ledger.revertSend(attempt, reason)),
      finishSend: async (attempt, result, rule) =>
        ask(`finishSend ${attempt.payoutId} ${attempt.attempt} ${result.kind}`, async () => {
          const reply = await ledger.finishSend(attempt, result, rule, NO_DOUBT_MS);
          if (reply.pausedReason !== undefined) this.#isPaused = true;
          return reply;
        }),
      readSending: async () => ask('readSending', async () => ledger.readSending()),
      markSendsUnknown: async (lease, attempts, reason) =>
        ask(`markSendsUnknown ${attempts.map(({ payoutId }) => payoutId).join(' ')}`, async () =>
          ledger.markSendsUnknown(lease, attempts, reason, NO_DOUBT_MS),
        ),
      object: async (objection) =>
        ask('object', async () => {
          // All workers have one journal, and the ledger forgets nothing: they always agree.
          this.#world.breaks(`false alarm: ${objection.reason}`);
          return ledger.object(objection);
        }),
      get: async (payoutId) => ask(`get ${payoutId}`, async () => ledger.readPayout(payoutId)),
      change: async (change) => {
        const outcome = await ask(describe(change), async () => this.rig.change(change));
        if (outcome !== 'done') throw new ConflictError(outcome, []);
      },
      idsIn: async (state) =>
        ask(`looks for ${state}`, async () =>
          (await this.payouts()).flatMap((payout) => (payout.state === state ? [payout.payoutId] : [])),
        ),
    };
  }

  /** What an operator does. */
  async change(who: string, change: StateChange): Promise<ChangeOutcome> {
    return this.#ask(`${who} ${describe(change)}`, async () => this.rig.change(change));
  }

  async read(who: string, payoutId: string): Promise<Payout | undefined> {
    return this.#world.atTurn(`${who} looks at ${payoutId}`, async () => this.rig.ledger.readPayout(payoutId));
  }

  async pause(): Promise<void> {
    await this.#ask('ann pauses', async () => {
      this.#isPaused = true;
      return this.rig.pause('ann wants it');
    });
  }

  async resume(): Promise<void> {
    await this.#ask('ann resumes', async () => {
      this.#isPaused = false;
      return this.rig.resume();
    });
  }

  async #noteBegun(payoutId: string): Promise<void> {
    this.begun += 1;
    if (this.#isPaused) this.#world.breaks(`not stopped: ${payoutId} began although the account was paused`);
    const sending = (await this.payouts()).filter(({ state }) => state === 'sending');
    if (sending.length > 1) this.#world.breaks(`two at a time: ${sending.map((payout) => payout.payoutId).join(', ')}`);
  }

  /** A worker's command, whose reply may be lost on the way. */
  async #askAsWorker<Reply>(what: string, run: () => Promise<Reply>, isDead: () => boolean): Promise<Reply> {
    if (isDead()) return new Promise(() => undefined);
    const number = (this.#commands += 1);
    const reply = await this.#ask(what, run);
    if (!this.#plan.lostReplies.includes(number)) return reply;
    this.#world.note(`${what}: the reply is lost`);
    throw new RedisUnavailableError('the reply is lost');
  }

  /** A command has its turn when it is carried out and another when its reply is heard. */
  async #ask<Reply>(what: string, run: () => Promise<Reply>): Promise<Reply> {
    const reply = await this.#world.atTurn(what, async () => {
      const result = await run();
      this.#world.note(`${what}${summarise(result)}`);
      return result;
    });
    await this.#world.turn(`${what}: reply`);
    return reply;
  }
}

/** In production BullMQ knows which payouts wait. */
export interface QueueView {
  idsIn(state: Payout['state']): Promise<readonly string[]>;
}

function describe({ payoutId, from, to, txhash = '' }: StateChange): string {
  return `changes ${payoutId} from ${from} to ${to} ${txhash}`.trimEnd();
}

function summarise(result: unknown): string {
  if (result === undefined) return '';
  if (typeof result === 'object' && result !== null && 'payoutId' in result) {
    const { state, attempt } = result as Payout;
    return ` → ${state} ${attempt}`;
  }
  return ` → ${JSON.stringify(result)}`;
}
