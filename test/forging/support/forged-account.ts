import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import type { Act } from '../../../src/control/approvals/act.js';
import { formatIntent, hashIntent, intentOf, type SignedFields } from '../../../src/control/intents/intent.js';
import type { Approval, IntentSignature, SignedApproval } from '../../../src/ledger/control-record.js';
import { LedgerKeys } from '../../../src/ledger/keys.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { type NewPayout, type Payout, type PayoutInput, payoutInputSchema } from '../../../src/ledger/payout.js';
import { PAYOUT_STATES } from '../../../src/ledger/states.js';
import { type KeyEntry, TEST_AUDIENCE, testKey } from '../../control/support/keys.js';
import * as signed from '../../control/support/signed.js';
import { signText } from '../../control/support/sign-at-once.js';

const { DAY_MS, entryOf, iso } = signed;

const KEYS = {
  ...{ shop: 1, 'shop-2': 2, olga: 3, ann: 4, wanda: 5, stolen: 6 },
  ...{ former: 7, future: 8, foreign: 9, bob: 10, 'ann-2': 11, gone: 12 },
};
export type KeyName = keyof typeof KEYS;

/** The keyring of every worker of the suite: `foreign` is not in it. */
export function keyringEntries(now: number): readonly KeyEntry[] {
  const changes: Readonly<Record<string, Partial<KeyEntry>>> = {
    ...{ stolen: { revoked: true }, former: { notAfter: iso(now - DAY_MS) }, future: { notBefore: iso(now + DAY_MS) } },
    ...{ ann: { role: 'approver' }, 'ann-2': { role: 'approver', person: 'ann' }, bob: { role: 'approver' } },
    ...{ gone: { role: 'approver', revoked: true }, olga: { role: 'operator' }, wanda: { role: 'worker' } },
  };
  const names = Object.keys(KEYS).filter((name) => name !== 'foreign') as KeyName[];
  return names.map((name) => entryOf(KEYS[name], name, 'producer', changes[name]));
}

type Days = readonly [from: number, to: number];
const timesOf = ([from, to]: Days) => ({
  at: iso(Date.now() + from * DAY_MS),
  expiresAt: iso(Date.now() + to * DAY_MS),
});

/** How a signature differs from what an honest producer makes. */
export interface SignOptions {
  readonly key?: KeyName;
  /** The name that the signature carries. @defaultValue the key's own */
  readonly as?: string;
  readonly platformId?: number;
  /** The environment that is signed, and stored. */
  readonly audience?: string;
  readonly days?: Days;
  readonly requestedBy?: string;
  readonly metadata?: string;
}

export function signPayout(platformId: number, fields: SignedFields, options: SignOptions = {}): IntentSignature {
  const { key = 'shop', days = [0, 1], requestedBy, metadata, audience = TEST_AUDIENCE } = options;
  const { at: issuedAt, expiresAt } = timesOf(days);
  const times = { issuedAt, expiresAt };
  const intent = intentOf(options.platformId ?? platformId, fields, { ...times, audience, metadata, requestedBy });
  const signature = signText(formatIntent(intent), testKey(KEYS[key]));
  return { key: options.as ?? key, signature, ...times, ...(requestedBy !== undefined && { requestedBy }), audience };
}

interface Stating {
  readonly key?: KeyName;
  /** @defaultValue an hour from now on */
  readonly days?: Days;
}

/** An act as an operator signs it, serialized; `change` alters it before, `key` signs instead. */
export function signAct(
  platformId: number,
  { key = 'olga', days = [0, 1 / 24], ...change }: Partial<Act> & Pick<Act, 'act'> & Stating,
) {
  const about = { audience: TEST_AUDIENCE, payoutId: '', intent: '', attempt: undefined, reason: 'looked at it' };
  return signed.signAct(KEYS[key], { ...about, by: key, ...timesOf(days), ...change }, platformId);
}

/** What an approver says, signed; `change` alters it before, `key` signs instead. */
export function signApproval(
  platformId: number,
  { key = 'bob', days = [0, 1 / 24], ...change }: Pick<Approval, 'payoutId' | 'intent'> & Partial<Approval> & Stating,
): SignedApproval {
  const { at, expiresAt } = timesOf(days);
  const expiry = (change.decision ?? 'approve') === 'approve' ? { expiresAt } : {};
  return signed.signApproval(KEYS[key], { by: key, at, ...expiry, ...change }, platformId);
}

export type SignedPayment = Pick<NewPayout, 'payoutId' | 'paymentId' | 'amount' | 'addressTo'>;
type Fields = Readonly<Record<string, string>>;
export type KeyCopy = ReadonlyMap<string, Buffer>;

/** One account: what an honest producer and an honest operator do, and what an attacker does with raw keys. */
export class ForgedAccount {
  readonly platformId: number;
  readonly keys: LedgerKeys;
  readonly redis: Redis;
  readonly ledger: PayoutLedger;
  readonly signed: SignedPayment[] = [];
  readonly #connection: RedisClient;
  readonly #queue: Queue;
  #jobs = 0;

  constructor(platformId: number, redisUrl: string, redis: Redis) {
    this.platformId = platformId;
    this.redis = redis;
    this.keys = new LedgerKeys(platformId);
    this.#connection = connectRedis(redisUrl, 'commands', silentLogger);
    this.ledger = new PayoutLedger(connectLedger(this.#connection, platformId, systemClock));
    this.#queue = new Queue('withdraw', { connection: redis, prefix: this.keys.prefix });
  }

  async enqueue(input: PayoutInput, options: SignOptions = {}) {
    await this.enqueueAs(input, options);
    const { payoutId, paymentId, amount, addressTo } = input;
    this.signed.push({ payoutId, paymentId, amount, addressTo });
  }

  /** As {@link enqueue}, to a wallet that the payout is named after. @returns its address */
  async order(payoutId: string, amount = '3') {
    const addressTo = `wallet-${payoutId}${this.platformId}`;
    await this.enqueue({ payoutId, paymentId: 6, amount, addressTo });
    return addressTo;
  }

  /** As {@link enqueue} for what no worker may send: its signature does not count. */
  async enqueueAs(input: PayoutInput, options: SignOptions = {}) {
    const valid = payoutInputSchema.parse(input);
    const metadata = valid.metadata === undefined ? {} : { metadata: JSON.stringify(valid.metadata) };
    await this.ledger.enqueue([{ ...valid, signed: signPayout(this.platformId, valid, { ...metadata, ...options }) }]);
  }

  async payout(payoutId: string): Promise<Payout> {
    return this.ledger.require(payoutId);
  }

  async isIn(state: Payout['state'], ...payoutIds: readonly string[]) {
    const payouts = await Promise.all(payoutIds.map(async (payoutId) => this.payout(payoutId)));
    return payouts.every((payout) => payout.state === state);
  }

  async intentHash(payoutId: string) {
    const payout = await this.payout(payoutId);
    if (payout.signed === undefined) throw new Error(`${payoutId} is not signed`);
    return hashIntent(intentOf(this.platformId, payout, payout.signed));
  }

  /** An act that states of the attempt that it paid nothing. */
  async resendAct(payoutId: string, change: Partial<Parameters<typeof signAct>[1]> = {}) {
    const intent = await this.intentHash(payoutId);
    return signAct(this.platformId, { act: 'resend', payoutId, intent, attempt: 1, ...change });
  }

  async record(payoutId: string): Promise<Record<string, string>> {
    return this.redis.hgetall(this.keys.payout(payoutId));
  }

  async set(payoutId: string, fields: Fields) {
    await this.redis.hset(this.keys.payout(payoutId), fields);
  }

  async unset(payoutId: string, ...fields: string[]) {
    await this.redis.hdel(this.keys.payout(payoutId), ...fields);
  }

  async recheck(payoutId: string) {
    await this.redis.sadd(this.keys.recheck, payoutId);
  }

  /** Puts a record where none is, queued, with its job. @returns its id */
  async invent(payoutId: string, record: Fields) {
    await this.redis.del(this.keys.payout(payoutId));
    return this.revive(payoutId, { attempt: '0', n: '1', h0: `q${Date.now().toString(36)}`, ...record });
  }

  /** Sets a payout back to `queued`, whatever it was, and rings for it. @returns its id */
  async revive(payoutId: string, change: Fields = {}) {
    const { redis, keys } = this;
    await redis.hdel(keys.payout(payoutId), 'held', 'pending');
    await redis.hset(keys.payout(payoutId), { ...change, state: 'queued' });
    for (const { key, isStream } of PAYOUT_STATES.map((state) => keys.stateIndex(state)))
      if (!isStream) await redis.zrem(key, payoutId);
    await redis.zadd(keys.state('queued'), await redis.hincrby(keys.ledger, 'seq', 1), payoutId);
    await this.ring(payoutId);
    return payoutId;
  }

  async ring(payoutId: unknown, data: Readonly<Record<string, unknown>> = {}) {
    this.#jobs += 1;
    await this.#queue.add('withdraw', { payoutId, ...data }, { jobId: `forged~${this.#jobs}` });
  }

  signatureFields(fields: SignedPayment, options: SignOptions = {}): Record<string, string> {
    const { key, signature, issuedAt, expiresAt, audience } = signPayout(this.platformId, fields, options);
    const parts = { sig: signature.slice(0, 64), sigRest: signature.slice(64) };
    return { key, ...parts, iat: issuedAt, exp: expiresAt, aud: audience };
  }

  async tamperings(): Promise<readonly { readonly payoutId: string; readonly reason: string }[]> {
    const entries = await this.redis.xrange(this.keys.events, '-', '+');
    return entries.flatMap(([, pairs]) => {
      const at = (name: string) => pairs[pairs.indexOf(name) + 1] ?? '';
      return at('type') === 'tampering' ? [{ payoutId: at('payoutId'), reason: at('reason') }] : [];
    });
  }

  async copyKeys(): Promise<KeyCopy> {
    const copy = new Map<string, Buffer>();
    for (const name of await this.redis.keys(`${this.keys.prefix}:*`)) {
      // BullMQ's limiter expires: a key that was listed may be gone.
      const value = (await this.redis.dumpBuffer(name)) as Buffer | null;
      if (value !== null) copy.set(name, value);
    }
    return copy;
  }

  async restore(copy: KeyCopy, names = /./) {
    for (const [name, value] of copy) if (names.test(name)) await this.redis.restore(name, 0, value, 'REPLACE');
  }

  async close() {
    await this.#queue.close();
    await closeRedis(this.#connection);
  }
}
