import { describe, expect, it, jest } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import {
  ClosedError,
  ConflictError,
  InvalidConfigError,
  NotFoundError,
  RedisUnavailableError,
  StoppedError,
  WaitTimeoutError,
} from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { intentOf } from '../../src/control/intents/intent.js';
import { type IntentVerdict, verifyIntent } from '../../src/control/intents/verify-intent.js';
import type { PayoutProducer, PayoutProducerOptions } from '../../src/control/payout-producer.js';
import { type Payout, type PayoutInput, payoutInputSchema } from '../../src/ledger/payout.js';
import { waitForPayout } from '../../src/producer/wait-for-payout.js';
import { messageOf } from '../control/support/folder.js';
import { keyringOf, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { DAY_MS, entryOf } from '../control/support/signed.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { account, enter, names } from '../ledger/support/use-account.js';
import { until } from '../support/until.js';
import { payoutInput } from './support/payout-input.js';
import { openProducer, producer, useProducer, waiting } from './support/use-producer.js';
import { IntentSigner } from '../control/support/sign-at-once.js';
import { keySigner } from '../../src/control/keys/signing-key.js';
import type { Signer } from '../../src/control/keys/signer.js';

useProducer();

it('enqueue accepts a payout once, of many calls of many producers, and gives it a job', async () => {
  const calls = [producer, ...names(4).map(() => openProducer())].flatMap((caller) =>
    names(10).map(async () => caller.enqueue(payoutInput({ amount: '12.500' }))),
  );
  const results = await Promise.all(calls);
  expect(results.filter(({ created }) => created)).toEqual([{ payoutId: 'p-1', state: 'queued', created: true }]);
  expect(await producer.get('p-1')).toMatchObject({ payoutId: 'p-1', state: 'queued', amount: '12.5', attempt: 0 });
  await until('it has a job', async () => (await producer.stats()).withoutJob === 0);
  expect([await waiting(), (await producer.stats()).queued]).toEqual([['p-1'], 1]);
});

it('enqueueMany keeps the order of results across its chunks and counts them', async () => {
  await producer.enqueue(payoutInput({ payoutId: 'p7' }));
  await producer.enqueue(payoutInput({ payoutId: 'p1100', amount: '1' }));
  // The check of the list blocks the process. If that takes five seconds, their jobs count as timed out.
  await until('both have a job', async () => (await producer.stats()).withoutJob === 0);
  const ids = names(1_200);
  const { results, ...counts } = await producer.enqueueMany(ids.map((payoutId) => payoutInput({ payoutId })));
  expect(counts).toEqual({ created: 1_198, existing: 1, conflicts: 1 });
  expect(results.map(({ payoutId }) => payoutId)).toEqual(ids);
  expect(results[7]).toEqual({ kind: 'existing', payoutId: 'p7', state: 'queued', created: false });
  expect(results[1_100]).toEqual({ kind: 'conflict', payoutId: 'p1100', state: 'queued', fields: ['amount'] });
  expect((await waiting()).toSorted()).toEqual(ids.toSorted());
});

it('cancel records who and why, and removes the job; it refuses what may have been paid, and what is no line', async () => {
  const act = { by: 'ann', reason: 'paid by hand' };
  await producer.enqueue(payoutInput());
  const { state, history } = await producer.cancel('p-1', act);
  expect([state, history.at(-1)]).toMatchObject(['cancelled', { from: 'queued', to: 'cancelled', ...act }]);
  await enter('sending', 'sent');
  await expect(producer.cancel('sent')).rejects.toThrow(ConflictError);
  await expect(producer.cancel('p-1', { by: 'a\nb' })).rejects.toThrow(/by: must be one line/);
  await producer.close();
  expect(await waiting()).toEqual([]);
});

it('looking up finds by batch and by transaction, and counts a batch', async () => {
  const ids = names(3);
  await producer.enqueueMany(ids.map((payoutId) => payoutInput({ payoutId, batch: 'salaries' })));
  const { payouts } = await producer.list({ batch: 'salaries', limit: 2 });
  expect(payouts.map(({ payoutId }) => payoutId)).toEqual(ids.slice(0, 2));
  await enter('in_progress', 'p');
  expect(await producer.getByGatewayId('hash-p')).toMatchObject({ payoutId: 'p', gatewayId: 'hash-p' });
  expect(await producer.batchStats('salaries')).toMatchObject({ total: 3, queued: 3, completed: 0 });
});

describe('waitFor', () => {
  const wait = async (timeoutMs = 60_000, signal?: AbortSignal) =>
    producer.waitFor('p-1', { timeoutMs, ...(signal && { signal }) });

  it('resolves once the payout is settled, or is held, and says why; it waits in short steps, however long', async () => {
    await producer.enqueueMany([payoutInput(), payoutInput({ payoutId: 'held' })]);
    const [settled, held] = [wait(1e10), producer.waitFor('held', { timeoutMs: 10_000 })];
    expect(await Promise.race([settled, systemClock.sleep(300).then(() => 'still waiting')])).toBe('still waiting');
    await producer.cancel('p-1');
    expect(await account.sender.holdPayout('held', 0, HOLD)).toBe(true);
    expect(await settled).toMatchObject({ payoutId: 'p-1', state: 'cancelled' });
    expect(await held).toMatchObject({ state: 'held', held: { kind: 'signature', reason: 'expired' } });
  });

  it('fails when the time is over, without a payout, and when the producer is closed', async () => {
    await expect(wait(1_000)).rejects.toBeInstanceOf(NotFoundError);
    await producer.enqueue(payoutInput());
    const late = wait(120);
    await expect(late).rejects.toBeInstanceOf(WaitTimeoutError);
    await expect(late).rejects.toThrow(/p-1 is not settled after 120 ms: it is queued/);
    const closed = expect(wait()).rejects.toBeInstanceOf(ClosedError);
    await producer.close();
    await closed;
  });

  it('ends at once when it is aborted, and changes nothing about the payout', async () => {
    await producer.enqueue(payoutInput());
    const startedAt = performance.now();
    const signal = AbortSignal.timeout(200);
    const stopped = new StoppedError('Waiting for payout p-1 was aborted; the payout goes on');
    for (let times = 0; times < 2; times += 1) await expect(wait(60_000, signal)).rejects.toThrow(stopped);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(await producer.get('p-1')).toMatchObject({ state: 'queued' });
  });

  it('outlasts a Redis that is unavailable for a while', async () => {
    const results = [new RedisUnavailableError('unavailable'), { payoutId: 'p-1', state: 'completed' } as Payout];
    const get = async (): Promise<Payout> => {
      const result = results.shift();
      if (result instanceof Error || result === undefined) throw result ?? new Error('asked too often');
      return Promise.resolve(result);
    };
    const source = { get, connection: { clock: systemClock } };
    expect((await waitForPayout(source, 'p-1', 5_000, new AbortController().signal)).state).toBe('completed');
  });
});

it('listeners hear what happens from now on, by the name of the state or of what happened to the account', async () => {
  await producer.enqueue(payoutInput({ payoutId: 'before' }));
  const heard: string[] = [];
  for (const name of ['queued', 'completed'] as const)
    producer.on(name, ({ payoutId, from }) => heard.push(`${name} ${payoutId ?? ''} ${from ?? ''}`));
  producer.on('paused', ({ by, reason }) => heard.push(`paused ${by ?? ''} ${reason ?? ''}`));
  await producer.enqueue(payoutInput({ payoutId: 'after' }));
  await enter('completed', 'p-1');
  await account.ledger.pause('ann', 'lunch');
  await until('four events', () => heard.length === 4);
  expect(heard).toEqual(['queued after ', 'queued p-1 ', 'completed p-1 in_progress', 'paused ann lunch']);
});

const BOOKS = { group: 'books', consumer: 'one' };

it('listeners do not suffer from each other, nor from one that was removed', async () => {
  const [heard, complaints]: [string[], string[]] = [[], []];
  const logger = { ...silentLogger, error: (_: object, message: string) => void complaints.push(message) };
  const taken = () => void heard.push('removed');
  const listening = openProducer({ logger })
    .on('queued', () => {
      throw new Error('a mistake');
    })
    .on('queued', async () => Promise.reject(new Error('a later mistake')))
    .on('queued', taken)
    .on('queued', ({ payoutId }) => heard.push(payoutId ?? ''))
    .off('queued', taken);
  await listening.enqueue(payoutInput({ payoutId: 'a' }));
  await until('an event and two complaints', () => heard.length > 0 && complaints.length === 2);
  expect(heard).toEqual(['a']);
});

it('events come again after a break or an error in the loop, but not after the signal ended it', async () => {
  await producer.enqueueMany(['a', 'b'].map((payoutId) => payoutInput({ payoutId })));
  const failing = async (): Promise<void> => {
    for await (const event of producer.events(BOOKS)) throw new Error(`cannot book ${event.payoutId ?? ''}`);
  };
  await expect(failing()).rejects.toThrow('cannot book a');
  const stop = new AbortController();
  for await (const { payoutId } of producer.events({ ...BOOKS, signal: stop.signal })) {
    expect(payoutId).toBe('a');
    stop.abort();
  }
  for await (const event of producer.events(BOOKS)) {
    expect(event).toMatchObject({ type: 'state', payoutId: 'b', to: 'queued', at: expect.stringMatching(/Z$/) });
    break;
  }
});

it('events are lost to a consumer that was silent for too long: it continues behind the other', async () => {
  await producer.enqueueMany(['a', 'b', 'c'].map((payoutId) => payoutInput({ payoutId })));
  const errors: string[] = [];
  const logger = { ...silentLogger, error: (_: object, message: string) => void errors.push(message) };
  const [stalled, other] = [openProducer({ logger }).events({ ...BOOKS, claimAfterMs: 60_000 }), openProducer()];
  expect((await stalled.next()).value).toMatchObject({ payoutId: 'a' });
  await account.connection.run('set-group-idle', { group: 'books', consumer: 'one', idleMs: 30_000, limit: 100 });
  const seen: string[] = [];
  for await (const { payoutId = '' } of other.events({ ...BOOKS, consumer: 'two', claimAfterMs: 1_000 })) {
    if (seen.push(payoutId) === 3) break;
  }
  expect(seen).toEqual(['a', 'b', 'c']);
  expect((await stalled.next()).value).toMatchObject({ payoutId: 'c' });
  expect(errors).toEqual([expect.stringMatching(/^events come twice: .*or a shorter claimAfterMs/)]);
  await stalled.return();
});

it('says once that two loops of one name get events twice, and gives each loop a name of its own by default', async () => {
  const errors: string[] = [];
  const logger = { ...silentLogger, error: (_: object, message: string) => void errors.push(message) };
  const twins = [openProducer({ logger }), openProducer({ logger })];
  const read = async (consumer?: string): Promise<string[]> => {
    const [group, stop] = [consumer ?? 'unnamed', new AbortController()];
    await producer.enqueueMany([1, 2, 3].map((of) => payoutInput({ payoutId: `${group}-${of}` })));
    const loops = twins.map((twin) => twin.events({ group, ...(consumer && { consumer }), signal: stop.signal }));
    const ids: string[] = [];
    const follow = async (events: (typeof loops)[number]): Promise<void> => {
      for await (const { payoutId = '' } of events) if (payoutId.startsWith(group)) ids.push(payoutId);
    };
    const following = Promise.all(loops.map(follow));
    await until('three events', () => new Set(ids).size === 3);
    if (consumer !== undefined) await until('the error', () => errors.length > 0);
    stop.abort();
    await following;
    return ids.toSorted();
  };
  expect(await read()).toEqual(['unnamed-1', 'unnamed-2', 'unnamed-3']);
  expect(errors).toEqual([]);
  expect((await read('same')).length).toBeGreaterThan(3);
  expect(errors[0]).toMatch(/^events come twice: another loop uses the consumer name "same" of the group "same" too/);
  expect(errors.length).toBeLessThanOrEqual(2);
});

it('without a logger, the error of a listener is a warning of the process', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const listening = openProducer().on('queued', () => {
    throw new Error('a mistake');
  });
  await listening.enqueue(payoutInput({ payoutId: 'a' }));
  await until('the warning', () => warn.mock.calls.length > 0);
  const detail: unknown = expect.stringMatching(/^\{"eventId":"\d+-\d+","error":"Error: a mistake"\}$/);
  const expected = ['a listener for payout events failed', { type: 'PayoutQueueWarning', detail }];
  expect(warn.mock.calls).toEqual([expected]);
  warn.mockRestore();
});

it('a producer leaves a shared connection open and refuses calls after closing', async () => {
  const shared = openProducer({ connection: account.redis });
  await shared.enqueue(payoutInput());
  await Promise.all([shared.close(), shared.close()]);
  await expect(shared.get('p-1')).rejects.toBeInstanceOf(ClosedError);
  expect(await account.ledger.get('p-1')).toMatchObject({ state: 'queued' });
});

const [privateKey, other] = [testKey(1), testKey(2)];
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const keyring = keyringOf(entryOf(1, 'shop', 'producer'), entryOf(2, 'other', 'producer'));

/** Everything that can be signed. */
const FULL: PayoutInput = payoutInput({
  amount: '12.500',
  addressTo: 'rPT1Sjq:4711 Ünïcode',
  symbol: 'USD',
  reference: '  invoice 77 – “ß” 🎉 ',
  metadata: { b: [1, 1e21, -0, null], '7': 'x\u2028y\ud800', a: { ä: 'ö' } },
  priority: 3,
  batch: 'b-1',
  requestedBy: 'Ann',
});

const KEY = { name: 'shop', privateKey };
const SIGNER = keySigner('shop', privateKey);
const open = (options: Partial<PayoutProducerOptions> = {}): PayoutProducer =>
  openProducer({ signer: SIGNER, audience: TEST_AUDIENCE, ...options });
const unsigned = (): PayoutProducer => open({ signer: undefined });
const signerOf = (key = KEY, clock = systemClock): IntentSigner =>
  new IntentSigner({ audience: TEST_AUDIENCE, key, platformId: account.platformId, clock });

/** A payout that was signed before, as it comes in a line of JSON. */
function signedBefore(signer: IntentSigner): PayoutInput {
  const fields = payoutInputSchema.parse(FULL);
  const given = { metadata: JSON.stringify(fields.metadata), requestedBy: fields.requestedBy };
  const signed = signer.sign(fields, given);
  return JSON.parse(JSON.stringify({ ...fields, ...signed })) as PayoutInput;
}

/** What a worker makes of what Redis holds. */
async function verify(payoutId = 'p-1'): Promise<IntentVerdict> {
  const payout = await account.ledger.require(payoutId);
  const { signed } = payout;
  if (signed === undefined) return verifyIntent({} as never, undefined, keyring, Date.now());
  return verifyIntent(intentOf(account.platformId, payout, signed), signed, keyring, Date.now());
}

/** The machine's clock, so long ago. */
function ago(ms: number): typeof systemClock {
  return Object.create(systemClock, { wallNow: { value: () => Date.now() - ms } }) as typeof systemClock;
}

describe('a producer with a signing key', () => {
  it('signs what the ledger stores, byte for byte, of many payouts too', async () => {
    const notBefore = new Date(Date.now() + DAY_MS).toISOString().replace('Z', '+00:00');
    await open().enqueueMany([{ ...FULL, notBefore }, payoutInput({ payoutId: 'p-2' })]);
    for (const payoutId of ['p-1', 'p-2'])
      expect(await verify(payoutId)).toMatchObject({ kind: 'verified', signer: { name: 'shop' } });
    expect(await account.ledger.get('p-1')).toMatchObject({
      requestedBy: 'Ann',
      signed: { key: 'shop', requestedBy: 'Ann' },
    });
  });

  it('refuses what would expire before it may be sent, and enqueues nothing', async () => {
    const producer = open();
    const late = { notBefore: new Date(Date.now() + 7 * DAY_MS + 60_000) };
    const many = producer.enqueueMany([payoutInput(), payoutInput({ payoutId: 'p-2', ...late })]);
    await expect(many).rejects.toThrow(
      /^\[1\]\.notBefore: must be less than 7 days from now, .* enqueue it later \(got "/,
    );
    expect((await producer.stats()).queued).toBe(0);
    await unsigned().enqueue(payoutInput(late));
  });

  it('keeps the signature of a payout that was signed before', async () => {
    const line = signedBefore(signerOf({ name: 'other', privateKey: other }));
    await open().enqueue(line);
    expect(await verify()).toMatchObject({ kind: 'verified', signer: { name: 'other' } });
    await unsigned().enqueueMany([{ ...line, payoutId: 'p-2' }]);
    expect(await verify('p-2')).toMatchObject({ fault: 'bad_signature' });
  });
});

/** As another environment signed and stored it. */
async function enqueueElsewhere(audience: string) {
  const { platformId } = account;
  const elsewhere = new IntentSigner({ key: KEY, platformId, audience, clock: ago(60_000) });
  const fields = payoutInputSchema.parse(payoutInput());
  await account.ledger.enqueue([{ ...fields, signed: elsewhere.sign(fields) }]);
}

describe('enqueueing again', () => {
  it.each<[string, fault: string, PayoutInput, first: () => Promise<unknown>]>([
    ['that has expired', 'expired', FULL, async () => open({ clock: ago(8 * DAY_MS) }).enqueue(FULL)],
    ['that nobody gave', 'unsigned', FULL, async () => unsigned().enqueue(FULL)],
    ['for a long other audience', 'wrong_audience', payoutInput(), async () => enqueueElsewhere('x'.repeat(200))],
  ])('renews a signature %s; without a key it leaves that as it is', async (_, fault, input, first) => {
    await first();
    expect(await verify()).toMatchObject({ fault, isTampering: false });
    for (const producer of [open(), unsigned()]) {
      expect(await producer.enqueue({ ...input, requestedBy: undefined })).toMatchObject({ created: false });
      expect(await verify()).toMatchObject({ kind: 'verified' });
      expect(await account.ledger.get('p-1')).not.toHaveProperty('requestedBy');
    }
  });

  it('keeps the newer signature where an older one comes again, also where it is held', async () => {
    const older = signedBefore(signerOf(KEY, ago(8 * DAY_MS)));
    await unsigned().enqueue(older);
    await open().enqueue(FULL);
    const { redis, keys } = account.connection;
    for (const state of ['queued', 'held']) {
      await redis.hset(keys.payout('p-1'), 'state', state);
      await unsigned().enqueue(older);
      expect(await verify()).toMatchObject({ kind: 'verified' });
      expect((await account.ledger.get('p-1'))?.state).toBe(state);
    }
  });

  it('leaves a signature alone once a send was begun, after the end, and with other data', async () => {
    const of = (payoutId: string): PayoutInput => ({ ...FULL, payoutId });
    const [sent, ended, other, another] = [of('p0'), of('p1'), of('p2'), of('p3')] as const;
    await open({ clock: ago(8 * DAY_MS) }).enqueueMany([sent, ended, other, another]);
    const { redis, keys } = account.connection;
    await redis.hset(keys.payout(sent.payoutId), 'attempt', '1');
    await account.ledger.change({ payoutId: ended.payoutId, from: 'queued', to: 'cancelled' });
    const changed = [
      { ...other, amount: '13' },
      { ...another, symbol: undefined },
    ];
    const { results } = await open().enqueueMany([sent, ended, ...changed]);
    expect(results.slice(2)).toMatchObject(['amount', 'symbol'].map((name) => ({ kind: 'conflict', fields: [name] })));
    for (const payoutId of names(4)) expect(await verify(payoutId)).toMatchObject({ fault: 'expired' });
  });
});

it('the option audience is required with a signer', () => {
  expect(() => open({ audience: undefined })).toThrow(
    /^audience: is required with signer and keysFile: the worker's PAYOUT_AUDIENCE/,
  );
});

it.each<[string, Signer, string]>([
  ['no function', { name: 'shop', sign: undefined as never }, 'signer: must be an object with sign'],
  ['the key as its name', keySigner(pem, privateKey), 'signer.name: must be 1 to 32 of'],
])('the option signer is refused with %s, and never shown', (_what, signer, message) => {
  const attempt = (): PayoutProducer => open({ signer });
  expect(attempt).toThrow(InvalidConfigError);
  expect(attempt).toThrow(message);
  expect(messageOf(attempt)).not.toContain(pem.split('\n')[1]?.slice(0, 20));
});
