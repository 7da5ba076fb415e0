import { every } from '../../base/clock.js';
import { ConflictError, NotFoundError } from '../../base/errors.js';
import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import type { HeldCount } from '../../ledger/reads/policy-report.js';
import { listPayoutIds, readReadable } from '../../ledger/payout-queries.js';
import { findFault, type HeldFor, type Hold, type Payout } from '../../ledger/payout.js';
import type { PolicedRuntime } from '../control-runtime.js';
import type { PolicyAuthority } from './policy-authority.js';

type ReleaseRuntime = Pick<PolicedRuntime, 'ledger' | 'relay' | 'logger'>;

const EVERY_MS = 1_000;
/** Payouts checked at once: about 30 ms. */
const BATCH = 100;

/**
 * Keeps the policy's holds current, in the process that sends. It releases what passes now, and holds early what will
 * not pass, so that people can approve it meanwhile. It never decides a send: the sender asks the policy again.
 */
export class HoldReleaser {
  readonly #runtime: ReleaseRuntime & Pick<PolicedRuntime, 'senderLedger' | 'journal' | 'clock'>;
  readonly #authority: PolicyAuthority;
  readonly #source: HeldPayouts;
  #cursor: string | undefined;
  #heldCursor: string | undefined;
  #hash = '';
  /** Held payouts by rule and reason in the present round; the rule is empty for other holds. `#counted` has the last full round. */
  #counting = new Map<string, HeldCount>();
  #counted: readonly HeldCount[] = [];

  constructor(
    runtime: ReleaseRuntime & Pick<PolicedRuntime, 'senderLedger' | 'journal' | 'clock'>,
    authority: PolicyAuthority,
    source: HeldPayouts,
  ) {
    this.#runtime = runtime;
    this.#authority = authority;
    this.#source = source;
  }

  /** Learns what others spent and hold. Nothing may be sent before it resolves. */
  async takeOver(): Promise<void> {
    this.#authority.takeOver(await this.#runtime.senderLedger.readSpends());
    // The lines must be complete before any send. Other holds are checked beside the sends.
    await this.#readHeld(({ reason }) => reason === 'wait');
  }

  get held(): readonly HeldCount[] {
    return this.#counted;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#runtime;
    const onError = ({ message }: Error): void => {
      logger.warn({ error: message }, 'what the policy holds could not be checked, will try again');
    };
    await every(EVERY_MS, this.check.bind(this), { clock, signal, onError });
  }

  async check(): Promise<void> {
    const { journal, clock } = this.#runtime;
    const authority = this.#authority;
    authority.catchUp();
    if (authority.hash !== this.#hash) await this.#readHeld(() => true);
    await this.#checkMarked();
    for (const payoutId of authority.findDue(BATCH)) await this.#checkOne(payoutId);
    for (const line of authority.findFronts()) await this.#serve(line);
    await this.#findUnknown();
    if (authority.hasEarlyRules) await this.#checkQueued();
    await authority.keepRejections();
    const addresses = authority.takeUnseen();
    if (addresses.length > 0) await journal.noteSeen({ at: clock.wallNow(), addresses });
  }

  /** Checks the oldest holds first: the lines form in that order. */
  async #readHeld(isWanted: (held: HeldFor) => boolean): Promise<void> {
    const { hash } = this.#authority;
    for (let after: string | undefined; ;) {
      const { payouts, next } = await this.#source.held(after, BATCH);
      for (const payout of payouts) {
        if (payout.held?.kind === 'policy' && isWanted(payout.held)) await this.#checkHeld(payout);
      }
      if (next === undefined) break;
      after = next;
    }
    this.#cursor = undefined;
    this.#hash = hash;
  }

  async #checkMarked(): Promise<void> {
    const payoutIds = await this.#source.marked(BATCH);
    // Unmark first: a later approval or rejection marks the payout again.
    await this.#source.unmark(payoutIds);
    for (const payoutId of payoutIds) await this.#checkOne(payoutId);
  }

  /** Finds holds of a process that did not know that it had lost the lease, one page a call. */
  async #findUnknown(): Promise<void> {
    const { payouts, next } = await this.#source.held(this.#heldCursor, BATCH);
    for (const payout of payouts) {
      this.#countHeld(payout);
      // The journal learns of the rejection.
      if (payout.held?.kind === 'rejection') this.#authority.permit(payout);
      if (payout.held?.kind !== 'policy') continue;
      if (!this.#authority.knows(payout.payoutId)) await this.#checkHeld(payout);
    }
    this.#heldCursor = next;
    if (next !== undefined) return;
    this.#counted = [...this.#counting.values()];
    this.#counting = new Map();
  }

  #countHeld({ held, updatedAt }: Payout): void {
    const { rule = '', reason } = held?.kind === 'policy' ? held : { reason: held?.kind ?? 'signature' };
    const key = `${rule} ${reason}`;
    const { count = 0, since = Infinity } = this.#counting.get(key) ?? {};
    const dueAt = Date.parse(held?.until ?? updatedAt);
    this.#counting.set(key, { rule, reason, count: count + 1, since: Math.min(since, dueAt) });
  }

  /** Releases from the front of a line while there is room. */
  async #serve(line: readonly string[]): Promise<void> {
    let checked = 0;
    for (const payoutId of line) {
      if (checked === BATCH || !(await this.#checkOne(payoutId))) return;
      checked += 1;
    }
  }

  /** @returns whether to continue with the next in line: this one is released or gone */
  async #checkOne(payoutId: string): Promise<boolean> {
    const payout = await this.#source.read(payoutId);
    // Released before: it keeps its room.
    if (payout?.state === 'queued') return true;
    if (payout?.state === 'held' && payout.held?.kind === 'policy') return this.#checkHeld(payout);
    if (payout?.state === 'held' && payout.held?.kind === 'rejection') this.#authority.permit(payout);
    this.#authority.leave(payoutId);
    return true;
  }

  async #checkHeld(payout: Payout): Promise<boolean> {
    const permit = this.#authority.permit(payout);
    if (permit.kind === 'granted') {
      await releaseHeld(this.#runtime, payout.payoutId, 'the policy lets it pass');
      return true;
    }
    const { hold } = permit;
    // The policy's hold stays: the lack of this journal alone must not hold payouts in bulk.
    if (hold.reason !== 'before_birth' && !isSameHold(payout.held, hold)) await this.#hold(payout, hold);
    return false;
  }

  async #hold({ payoutId, attempt }: Payout, hold: Hold): Promise<void> {
    await this.#authority.keepRejections();
    await this.#runtime.senderLedger.holdPayout(payoutId, attempt, hold);
  }

  async #checkQueued(): Promise<void> {
    const { logger } = this.#runtime;
    const { payouts, next } = await this.#source.queued(this.#cursor, BATCH);
    for (const payout of payouts) {
      const hold = this.#authority.checkEarly(payout);
      if (hold === undefined) continue;
      await this.#hold(payout, hold);
      logger.info({ payoutId: payout.payoutId, rule: hold.rule, reason: hold.message }, 'payout held by the policy');
    }
    this.#cursor = next;
  }
}

/** Ignores the message: its sums change all the time, which is not worth a write. */
function isSameHold(one: HeldFor | undefined, other: HeldFor): boolean {
  if (one === undefined) return false;
  const [had, has] = [one, other].map(({ kind, reason, rule, needs }) =>
    JSON.stringify([kind, reason, rule, needs?.by, needs?.persons]),
  );
  const distanceMs = Math.abs(Date.parse(one.until ?? '') - Date.parse(other.until ?? ''));
  return had === has && (one.until === other.until || distanceMs < 2_000);
}

async function releaseHeld({ ledger, relay, logger }: ReleaseRuntime, payoutId: string, reason: string): Promise<void> {
  try {
    await ledger.change({ payoutId, from: 'held', to: 'queued', reason });
    await relay.tryDeliver('queued', [payoutId]);
    logger.info({ payoutId, reason }, 'payout released');
  } catch (error) {
    // An operator cancelled or released it meanwhile.
    if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
  }
}

/** Requeues what was held only because the journal was not adopted. Call it after the adoption. */
export async function releaseAdopted(
  runtime: ReleaseRuntime,
  source: Pick<HeldPayouts, 'held'>,
  isOver: () => boolean,
): Promise<void> {
  let after: string | undefined;
  do {
    const { payouts, next } = await source.held(after, BATCH);
    for (const { payoutId, held } of payouts) {
      if (isOver()) return;
      if (held?.reason === 'before_birth') await releaseHeld(runtime, payoutId, 'the send journal was adopted');
    }
    after = next;
  } while (after !== undefined);
}

export type HeldPayouts = Pick<HoldSource, 'read' | 'held' | 'queued' | 'marked' | 'unmark'>;

interface HeldPage {
  readonly payouts: readonly Payout[];
  readonly next: string | undefined;
}

/**
 * Reads what the policy holds, or may hold, from Redis. It omits what is unreadable or can never be sent: the sender
 * holds that. Every method throws RedisUnavailableError.
 */
export class HoldSource {
  readonly #connection: LedgerConnection;

  constructor(connection: LedgerConnection) {
    this.#connection = connection;
  }

  async read(payoutId: string): Promise<Payout | undefined> {
    return (await this.#readAll([payoutId]))[0];
  }

  /** A page of held payouts, the oldest hold first. `next` is undefined at the end. */
  async held(after: string | undefined, limit: number): Promise<HeldPage> {
    const options = { state: 'held', limit, ...(after !== undefined && { cursor: after }) } as const;
    const { payoutIds, next } = await listPayoutIds(this.#connection, options);
    return { payouts: await this.#readAll(payoutIds), next };
  }

  /** A page of the queue. `next` stays valid at the end, for payouts that are queued later. */
  async queued(after: string | undefined, limit: number): Promise<HeldPage> {
    const { redis, keys } = this.#connection;
    const from = after === undefined ? '-inf' : `(${after}`;
    const found = await ask(
      redis.zrange(keys.state('queued'), from, '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES'),
    );
    const payouts = await this.#readAll(found.filter((_, index) => index % 2 === 0));
    return { payouts, next: found.at(-1) ?? after };
  }

  /** Payouts that were approved or rejected since they were unmarked. */
  async marked(limit: number): Promise<string[]> {
    const { redis, keys } = this.#connection;
    return ask(redis.srandmember(keys.recheck, limit));
  }

  async unmark(payoutIds: readonly string[]): Promise<void> {
    const { redis, keys } = this.#connection;
    if (payoutIds.length > 0) await ask(redis.srem(keys.recheck, ...payoutIds));
  }

  async #readAll(payoutIds: readonly string[]): Promise<readonly Payout[]> {
    const payouts = await readReadable(this.#connection, payoutIds, () => undefined);
    // No rule can check an invalid amount.
    return payouts.filter((payout) => findFault(payout) === undefined);
  }
}
