import { beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, RedisUnavailableError } from '../../src/base/errors.js';
import {
  type ComparedPayment,
  type FoundPayment,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
} from '../../src/gateway/gateway.js';
import { comparePayment } from '../../src/gateway/compare-payment.js';
import type { SendLine } from '../../src/journal/journal-line.js';
import { orderIdOf } from '../../src/ledger/order-id.js';
import { type LookUpLedger, OrderLookUps } from '../../src/ledger/order-look-ups.js';
import type { LookUpEvidence } from '../../src/ledger/reads/gateway-facts.js';
import { readMoneyAtRisk } from '../../src/ledger/reads/money-at-risk.js';
import type { SendAttempt } from '../../src/ledger/sender-ledger.js';
import { silentLogger } from '../../src/base/logger.js';
import { Janitor } from '../../src/worker/janitor.js';
import { toRecordable } from '../../src/worker/sender/ledger-outcome-recorder.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import {
  account,
  ACCEPTED,
  ANN,
  AUDIENCE,
  beginOne,
  begun,
  change,
  clock,
  connection,
  enqueue,
  finish,
  keys,
  read,
  redis,
  REJECTED,
  sendAs,
  sender,
  stateOf,
  UNKNOWN,
  useAccount,
} from '../ledger/support/use-account.js';

/** The janitor on a real ledger, with a gateway that knows what a test says. Its waits take no time. */

useAccount();

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Order id → the gateway's answer. */
let answers: Map<string, FoundPayment | Error>;
let asked: { readonly orderId: string; readonly at: number }[];
let journal: MemoryJournal;
let evidence: LookUpEvidence[];

beforeEach(() => {
  answers = new Map();
  asked = [];
  evidence = [];
  journal = new MemoryJournal();
});

const NOT_FOUND = new GatewayRejectedError('v2/withdrawstatus', 'withdrawal not found');

/** The janitor's process, for so long. Its end is a kill between two of its steps. */
async function runFor(
  ms: number,
  onAnswer: (orderId: string) => Promise<unknown> = async () => Promise.resolve(),
  lookUps: LookUpLedger = new OrderLookUps(connection),
) {
  const end = new AbortController();
  const from = clock.wallNow();
  const until = from + ms;
  const janitor = new Janitor({
    clock: {
      now: () => clock.wallNow(),
      wallNow: () => clock.wallNow(),
      async sleep(sleepMs) {
        // Between later questions nothing happens.
        const step = clock.wallNow() - from < 3 * MINUTE_MS ? sleepMs : Math.max(sleepMs, MINUTE_MS);
        clock.advance(Math.min(step, until - clock.wallNow()));
        if (clock.wallNow() >= until) end.abort();
        return Promise.resolve();
      },
    },
    gateway: {
      async findPayment(orderId) {
        asked.push({ orderId, at: clock.wallNow() });
        const answer = answers.get(orderId) ?? NOT_FOUND;
        await onAnswer(orderId);
        if (answer instanceof Error) throw answer;
        return answer;
      },
      comparePayment,
    },
    lookUps,
    journal,
    audience: AUDIENCE,
    settings: { pollRate: 10 },
    publishEvidence: async (each) => {
      evidence.push(each);
      return Promise.resolve();
    },
    observer: {},
    logger: silentLogger,
  });
  await janitor.run(end.signal);
}

function payment({ paymentId, addressTo, amount }: ComparedPayment, more: Partial<FoundPayment> = {}): FoundPayment {
  return { kind: 'paid', gatewayId: '77', paymentId, addressTo, amount, ...more };
}

/** The gateway has the payment of an attempt. */
async function paid(attempt: SendAttempt, more: Partial<FoundPayment> = {}) {
  const payout = await read(attempt.payoutId);
  answers.set(orderIdOf(attempt), payment(payout as ComparedPayment, more));
}

async function unknownOne(payoutId = 'p'): Promise<SendAttempt> {
  await enqueue(payoutId);
  const [attempt] = await sendAs(UNKNOWN, payoutId);
  return attempt as SendAttempt;
}

const waits = () => asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0));
const events = async () => (await redis.xrange(keys.events, '-', '+')).map(([, fields]) => fields[1]);

it('follows a payment that it finds, and says in the history who found it', async () => {
  const attempt = await unknownOne();
  await paid(attempt);
  await runFor(MINUTE_MS);
  const payout = await read();
  expect(payout).toMatchObject({ state: 'in_progress', gatewayId: '77', lookUp: { answer: 'found', count: 1 } });
  expect(payout?.history.at(-1)).toMatchObject({ from: 'unknown', reason: expect.stringContaining('worker found') });
  expect(payout?.history.at(-1)).not.toHaveProperty('by');
  expect(await redis.zrange(keys.outbox, '0', '-1')).toContain('in_progress p');
  await runFor(HOUR_MS);
  expect(asked).toHaveLength(1);
  expect(await redis.exists(keys.lookUps)).toBe(0);
});

it.each([
  ['another wallet', { addressTo: 'wallet-of-another' }, 'addressTo is wallet-of-another'],
  ['another amount', { amount: '12.6' }, 'amount is 12.6'],
  ['another currency', { paymentId: 8 }, 'paymentId is 8'],
])('a payment of %s changes nothing, and is an alarm, once', async (_, more, text) => {
  await paid(await unknownOne(), more);
  await runFor(3 * HOUR_MS);
  const payout = await read();
  expect(payout).toMatchObject({ state: 'unknown', lookUp: { answer: 'other_payment' } });
  expect(payout).not.toHaveProperty('gatewayId');
  expect(payout?.lookUp?.message).toContain(text);
  expect((await events()).filter((type) => type === 'other_payment')).toHaveLength(1);
  expect(await readMoneyAtRisk(connection)).toMatchObject({ otherPayment: { payoutId: 'p' } });
});

it('a payment of which the gateway leaves something out is not followed', async () => {
  const attempt = await unknownOne();
  const { addressTo, ...rest } = payment((await read()) as ComparedPayment);
  answers.set(orderIdOf(attempt), rest);
  await runFor(MINUTE_MS);
  expect(await read()).toMatchObject({ state: 'unknown', lookUp: { answer: 'failed' } });
  expect((await read())?.lookUp?.message).toContain(`addressTo is missing at the gateway, ${addressTo} in the payout`);
});

it.each<[string, Error, string]>([
  ['not found', NOT_FOUND, 'refused'],
  ['no response', new GatewayUnavailableError('no response in time'), 'failed'],
  ['HTML', new GatewayInvalidResponseError('v2/withdrawstatus', 'it is no JSON'), 'failed'],
])('%s leaves it unknown whatever the number of answers, on a schedule of three days', async (_, error, answer) => {
  const attempt = await unknownOne();
  answers.set(orderIdOf(attempt), error);
  const since = clock.wallNow();
  await runFor(4 * 24 * HOUR_MS);
  expect(await read()).toMatchObject({ state: 'unknown', attempt: 1, lookUp: { answer, message: error.message } });
  expect((asked[0]?.at ?? 0) - since).toBeGreaterThanOrEqual(10_000);
  for (const [index, least] of [30_000, 2 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, HOUR_MS].entries()) {
    expect(waits()[index]).toBeGreaterThanOrEqual(least);
    expect(waits()[index]).toBeLessThanOrEqual(least + MINUTE_MS);
  }
  const forMs = (asked.at(-1)?.at ?? 0) - (asked[0]?.at ?? 0);
  expect(forMs).toBeGreaterThan(71 * HOUR_MS);
  expect(forMs).toBeLessThanOrEqual(72 * HOUR_MS);
  expect((await read())?.lookUp).toMatchObject({
    count: asked.length,
    since: new Date(asked[0]?.at ?? 0).toISOString(),
  });
  expect(new Set(asked.map(({ orderId }) => orderId))).toEqual(new Set([orderIdOf(attempt)]));
});

it('a restart continues the schedule, and asks for nothing twice', async () => {
  await unknownOne();
  for (let hour = 0; hour < 24; hour += 1) await runFor(HOUR_MS / 4);
  const [second = 0, third = 0, fourth = 0] = waits();
  expect([second, third, fourth].every((ms, index) => ms >= ([30_000, 120_000, 600_000][index] ?? 0))).toBe(true);
  for (const ms of waits().slice(3)) expect(ms).toBeGreaterThanOrEqual(HOUR_MS);
  expect((await read())?.lookUp?.count).toBe(asked.length);
});

it('a payout that Redis lost from the line is asked for again within minutes, on its schedule', async () => {
  await unknownOne();
  class Forgetful extends OrderLookUps {
    override async note(...of: Parameters<OrderLookUps['note']>) {
      await super.note(...of);
      if (asked.length === 2) await redis.del(keys.lookUps);
    }
  }
  await runFor(10 * MINUTE_MS, undefined, new Forgetful(connection));
  expect(asked).toHaveLength(3);
  expect(waits()[1]).toBeGreaterThanOrEqual(2 * MINUTE_MS);
});

it('never asks for a payout that is being sent', async () => {
  const attempt = await begun();
  await paid(attempt);
  await redis.zadd(keys.lookUps, 0, 'p');
  await runFor(5 * MINUTE_MS);
  expect(asked).toEqual([]);
  expect(await stateOf()).toBe('sending');
});

it('what is found of an attempt that is being sent changes nothing', async () => {
  const attempt = await begun();
  const before = await account.dump();
  const result = await new OrderLookUps(connection).recordFound(attempt, { gatewayId: '77' });
  expect(result).toEqual({ recorded: false });
  expect(await account.dump()).toEqual(before);
});

it('decides nothing about pace: who waits for the response waits on', async () => {
  const attempt = await unknownOne();
  const before = await sender.readSender();
  expect(before.awaitingAnswer).toBe(true);
  const counted = ['counted', 'unknownsInARow', 'rejectionsInARow', 'payoutRejectionsInARow'];
  const breaker = await redis.hmget(keys.ledger, ...counted);
  expect(breaker).toContain('1');
  await paid(attempt);
  await runFor(MINUTE_MS);
  expect(await stateOf()).toBe('in_progress');
  expect(await sender.readSender()).toEqual(before);
  // The breaker counts responses: one send more without one may have to stop the account.
  expect(await redis.hmget(keys.ledger, ...counted)).toEqual(breaker);
});

it('asks for each attempt by its own order id, and takes only the payment of the newest', async () => {
  const first = await unknownOne();
  clock.advance(MINUTE_MS);
  await change('p', 'unknown', 'queued', { ...ANN, attempt: 1 });
  const second = await beginOne('p');
  await finish(second, UNKNOWN);
  await paid(second);
  await runFor(MINUTE_MS);
  expect(new Set(asked.map(({ orderId }) => orderId))).toEqual(new Set([orderIdOf(second), orderIdOf(first)]));
  expect(await read()).toMatchObject({ state: 'in_progress', attempt: 2, gatewayId: '77' });
});

it('the payment of an earlier attempt, which a person took for not sent, is an alarm', async () => {
  const first = await unknownOne();
  await runFor(15_000);
  clock.advance(MINUTE_MS);
  await change('p', 'unknown', 'queued', { ...ANN, attempt: 1 });
  await finish(await beginOne('p'), ACCEPTED);
  await paid(first);
  await runFor(HOUR_MS);
  expect(await read()).toMatchObject({ state: 'in_progress', gatewayId: 'h', lateGatewayId: '77' });
  expect((await events()).filter((type) => type === 'late_payment')).toHaveLength(1);
});

it('of several attempts, what a person must know first is told: a payment before a "not found"', async () => {
  const first = await unknownOne();
  clock.advance(MINUTE_MS);
  await change('p', 'unknown', 'queued', { ...ANN, attempt: 1 });
  await finish(await beginOne('p'), UNKNOWN);
  await paid(first, { amount: '99' });
  await runFor(15_000);
  expect(asked).toHaveLength(2);
  expect(await read()).toMatchObject({ state: 'unknown', lookUp: { answer: 'other_payment', attempt: 2 } });
  expect(await events()).toContain('other_payment');
});

it('a payment that is found after it was written off is an alarm', async () => {
  const attempt = await unknownOne();
  await runFor(15_000);
  await change('p', 'unknown', 'written_off', ANN);
  await paid(attempt);
  await runFor(HOUR_MS);
  expect(await read()).toMatchObject({ state: 'written_off', lateGatewayId: '77' });
  expect(await events()).toContain('late_payment');
});

it('a payment that is found while the payout waits to be sent again is followed: it is not paid twice', async () => {
  const attempt = await unknownOne();
  await runFor(15_000);
  clock.advance(MINUTE_MS);
  await change('p', 'unknown', 'queued', { ...ANN, attempt: 1 });
  await paid(attempt);
  await runFor(HOUR_MS);
  expect(await read()).toMatchObject({ state: 'in_progress', gatewayId: '77' });
});

it.each(['resolved as not sent', 'answered late'])(
  'an answer that comes after it was %s decides nothing else',
  async (how) => {
    const attempt = await unknownOne();
    clock.advance(MINUTE_MS);
    await paid(attempt);
    await runFor(15_000, async () => {
      if (how === 'answered late') await finish(attempt, REJECTED);
      else {
        await change('p', 'unknown', 'queued', { ...ANN, attempt: 1 });
        await beginOne('p');
      }
    });
    const payout = await read();
    expect(payout).toMatchObject({ state: how === 'answered late' ? 'rejected' : 'sending', lateGatewayId: '77' });
  },
);

it('believes no record that was altered: the journal has what was sent', async () => {
  const attempt = await unknownOne();
  const { paymentId, amount, addressTo } = (await read()) as ComparedPayment;
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  journal.given({ ...attempt, ...sendLine(1), request: { paymentId, amount, addressTo } });
  await paid(attempt);
  await redis.hset(keys.payout('p'), 'addressTo', 'wallet-of-a-thief');
  answers.set(orderIdOf(attempt), payment({ paymentId, amount, addressTo: 'wallet-of-a-thief' }));
  await runFor(MINUTE_MS);
  expect(await read()).toMatchObject({ state: 'unknown', lookUp: { answer: 'other_payment' } });
});

it('a token that someone put into the record finds nothing, and moves nothing', async () => {
  const attempt = await unknownOne();
  await paid(attempt);
  await redis.hset(keys.payout('p'), 'tokens', 'forged');
  await runFor(MINUTE_MS);
  expect(asked.map(({ orderId }) => orderId)).not.toContain(orderIdOf(attempt));
  expect(await stateOf()).toBe('unknown');
});

it('writes what it found to the journal too, before the ledger', async () => {
  const attempt = await unknownOne();
  const { paymentId, amount, addressTo } = (await read()) as ComparedPayment;
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  journal.given({ ...attempt, ...sendLine(1), request: { paymentId, amount, addressTo } });
  await paid(attempt, { txhash: '0xabc' });
  await runFor(MINUTE_MS);
  const [entry] = journal.lastSends(1);
  expect(entry?.outcome).toEqual({ kind: 'accepted', gatewayId: '77', txhash: '0xabc', found: true });
  // A sender that takes it for the response would no longer wait for the request.
  expect(toRecordable(entry?.outcome)).toBeUndefined();
});

it('learns from the first payout that was accepted whether the gateway finds any', async () => {
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  await enqueue('p');
  const [attempt] = (await sendAs(ACCEPTED, 'p')) as [SendAttempt];
  const { paymentId, amount, addressTo } = (await read()) as ComparedPayment;
  let isSent = false;
  await runFor(5 * MINUTE_MS, async () => Promise.resolve());
  expect(asked).toEqual([]);
  const send = { ...attempt, ...sendLine(1), request: { paymentId, amount, addressTo } } as SendLine;
  const accepted = () => {
    if (isSent) return;
    isSent = true;
    journal.given(send);
    journal.noteOutcome(attempt, ACCEPTED, clock.wallNow());
  };
  await enqueue('q');
  const [other] = (await sendAs(UNKNOWN, 'q')) as [SendAttempt];
  await runFor(5 * MINUTE_MS, async () => {
    accepted();
    return Promise.resolve();
  });
  expect(asked.map(({ orderId }) => orderId)).toContain(orderIdOf(other));
  expect(evidence.at(-1)).toMatchObject({ lookUp: 'fails', lookUpMessage: NOT_FOUND.message });
  await paid(attempt, { gatewayId: 'h' });
  isSent = false;
  journal = new MemoryJournal();
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  await runFor(2 * HOUR_MS, async () => {
    accepted();
    return Promise.resolve();
  });
  expect(evidence.at(-1)).toMatchObject({ lookUp: 'works' });
  expect(await stateOf()).toBe('in_progress');
});

it('asks at most as often as its share of the polls allows', async () => {
  const payoutIds = Array.from({ length: 30 }, (_, index) => `p${index}`);
  await enqueue(...payoutIds);
  await sendAs(UNKNOWN, ...payoutIds);
  await runFor(2 * MINUTE_MS);
  expect(asked.length).toBeGreaterThan(30);
  // 10 polls a second are allowed, and a tenth of that is 1.
  for (const ms of waits()) expect(ms).toBeGreaterThanOrEqual(1_000);
});

it('asks nothing for a ledger of another gateway', async () => {
  await unknownOne();
  await redis.hset(keys.ledger, 'audience', 'https://other.example');
  await runFor(HOUR_MS);
  expect(asked).toEqual([]);
});

it('a record that cannot be read keeps back no other', async () => {
  const attempt = await unknownOne('q');
  await unknownOne('p');
  await paid(attempt);
  await redis.zadd(keys.lookUps, 0, 'p');
  await redis.hset(keys.payout('p'), 'n', 'x');
  await runFor(MINUTE_MS);
  expect(await stateOf('q')).toBe('in_progress');
});

it('a clock that was set back does not end the questions', async () => {
  await unknownOne();
  await runFor(15_000);
  expect(asked).toHaveLength(1);
  // As a clock that was two days ahead left it.
  await redis.zadd(keys.lookUps, clock.wallNow() + 48 * HOUR_MS, 'p');
  await runFor(15_000);
  expect(asked).toHaveLength(2);
});

const STEPS = ['readPayout', 'readAttempts', 'recordFound', 'note'] as const;

/** Something happens once, before or after a step. */
function meanwhile(step: (typeof STEPS)[number] | 'findPayment', isAfter: boolean, happens: () => Promise<unknown>) {
  let isOver = false;
  const once = async () => {
    if (isOver) return;
    isOver = true;
    await happens();
  };
  const lookUps = new OrderLookUps(connection);
  const steps = STEPS.map((name) => [
    name,
    async (...args: never[]) => {
      if (name === step && !isAfter) await once();
      const reply = await (lookUps[name] as (...given: never[]) => Promise<unknown>).apply(lookUps, args);
      if (name === step && isAfter) await once();
      return reply;
    },
  ]);
  const watched = Object.assign(Object.create(lookUps) as OrderLookUps, Object.fromEntries(steps)) as LookUpLedger;
  for (const name of ['readAudience', 'lineUp', 'readDue', 'drop', 'postpone'] as const)
    Object.assign(watched, { [name]: (lookUps[name] as () => unknown).bind(lookUps) });
  return { lookUps: watched, onAnswer: async () => (step === 'findPayment' ? once() : undefined) };
}

const KILLED = new RedisUnavailableError('the process was killed');

const MEANWHILE: Readonly<Record<string, (attempt: SendAttempt) => Promise<unknown>>> = {
  'its process dies': async () => Promise.reject(KILLED),
  'a person states that it was not sent': async () => change('p', 'unknown', 'queued', { ...ANN, attempt: 1 }),
  'it is sent again': async () => {
    await change('p', 'unknown', 'queued', { ...ANN, attempt: 1 });
    await finish(await beginOne('p'), { kind: 'accepted', gatewayId: '79' });
  },
  'a person names the payment': async () => change('p', 'unknown', 'in_progress', { ...ANN, gatewayId: '77' }),
  'a person names another payment': async () => change('p', 'unknown', 'in_progress', { ...ANN, gatewayId: '78' }),
  'a person writes it off': async () => change('p', 'unknown', 'written_off', ANN),
  'its own response accepts it': async (attempt) => finish(attempt, { kind: 'accepted', gatewayId: '77' }),
  'its own response rejects it': async (attempt) => finish(attempt, REJECTED),
};

/** Each step of the janitor is one script or one question: these are all orders of it and of one other act. */
describe.each(Object.entries(MEANWHILE))('while %s', (_, happens) => {
  it.each(
    [...STEPS, 'findPayment' as const].flatMap((step) => [false, true].map((isAfter) => [step, isAfter] as const)),
  )('the payment is never lost, and never paid again (%s, after it: %s)', async (step, isAfter) => {
    const attempt = await unknownOne();
    clock.advance(MINUTE_MS);
    await paid(attempt);
    const { lookUps, onAnswer } = meanwhile(step, isAfter, async () => {
      // What the janitor did first may refuse it.
      await happens(attempt).catch((error: unknown) => {
        if (!(error instanceof ConflictError)) throw error;
      });
    });
    await runFor(15_000, onAnswer, lookUps);
    await runFor(HOUR_MS);
    const payout = await read();
    const { state, gatewayId, lateGatewayId } = payout ?? {};
    expect([gatewayId, lateGatewayId]).toContain('77');
    expect(state).not.toBe('queued');
    expect(state === 'unknown' || state === 'rejected' ? lateGatewayId : '77').toBe('77');
    const told = await events();
    expect(told.filter((type) => type === 'late_payment')).toHaveLength(lateGatewayId === undefined ? 0 : 1);
    expect(payout?.history.filter(({ to }) => to === 'in_progress').length).toBeLessThanOrEqual(1);
  });
});

function sendLine(sends: number) {
  return { epoch: 1, sends, after: { sends: sends - 1, token: '' }, inFlightMs: 0, at: clock.wallNow() };
}
