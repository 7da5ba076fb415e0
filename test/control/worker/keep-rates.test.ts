import { expect, it } from '@jest/globals';
import { UsdRates } from '../../../src/control/policy/usd-rates.js';
import { DEFAULT_USD, parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { keepRates } from '../../../src/control/worker/account-policy.js';
import { TestPolicy } from './support.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { silentLogger } from '../../../src/base/logger.js';

const MINUTE_MS = 60_000;

function policyOf(usd: object, limit: object): Policy {
  const rules = [{ name: 'a', when: { paymentId: ['10'] }, cap: limit, over: 'refuse' }];
  return parsePolicy({ version: '1', platformId: '1', default: 'send', usd, rules });
}

/** @returns when the rates were fetched within 20 minutes, in minutes */
async function fetchedAt(policy: Policy, isBroken: (minute: number) => boolean = () => false): Promise<number[]> {
  const end = new AbortController();
  const minutes: number[] = [];
  let now = 0;
  const sleep = async (ms: number): Promise<void> => {
    now += ms;
    if (now > 20 * MINUTE_MS) end.abort();
    return Promise.resolve();
  };
  const clock = { now: () => now, wallNow: () => now, sleep };
  const gateway = {
    currencies: async () => {
      minutes.push(now / MINUTE_MS);
      if (isBroken(now / MINUTE_MS)) throw new Error('no answer');
      return Promise.resolve([{ id: 10, name: 'BTC', rate_usd: '60000' }]);
    },
  };
  const rates = new UsdRates(policy.usd ?? DEFAULT_USD);
  const journal = new MemoryJournal();
  const current = new TestPolicy(policy);
  await keepRates({ current, journal, gateway, clock, logger: silentLogger }, rates, end.signal);
  return minutes.map((minute) => Math.round(minute * 100) / 100);
}

it('fetches rates twice at first, then every five minutes, and more often where the policy takes them for old sooner', async () => {
  expect(await fetchedAt(policyOf({}, { usd: '10' }))).toEqual([0, 0.17, 5.17, 10.17, 15.17]);
  expect(await fetchedAt(policyOf({ maxAge: '8m' }, { usd: '10' }))).toEqual([0, 0.17, 4.17, 8.17, 12.17, 16.17]);
});

it('asks again soon where the gateway does not answer, and never where no rule is in dollars', async () => {
  const minutes = await fetchedAt(policyOf({}, { usd: '10' }), (minute) => minute > 4 && minute < 5.4);
  expect(minutes.slice(0, 6).map((minute) => Math.round(minute * 60))).toEqual([0, 10, 310, 320, 330, 630]);
  expect(await fetchedAt(policyOf({}, { amount: '1' }))).toEqual([]);
});

it('keeps the first rate in the journal, where the next process finds it', async () => {
  const policy = policyOf({}, { usd: '10' });
  const journal = new MemoryJournal();
  const named = async (rate: string, times: number): Promise<UsdRates> => {
    const end = new AbortController();
    const rates = new UsdRates(policy.usd ?? DEFAULT_USD);
    let now = 0;
    let fetched = 0;
    const sleep = async (ms: number): Promise<void> => {
      now += ms;
      if (fetched === times) end.abort();
      return Promise.resolve();
    };
    const clock = { now: () => now, wallNow: () => now, sleep };
    const gateway = {
      currencies: async () => {
        fetched += 1;
        return Promise.resolve([{ id: 10, name: 'BTC', rate_usd: rate }]);
      },
    };
    const current = new TestPolicy(policy);
    await keepRates({ current, journal, gateway, clock, logger: silentLogger }, rates, end.signal);
    return rates;
  };
  expect((await named('60000', 2)).worthOf(10, '1', 0).kind).toBe('known');
  expect(journal.lines).toEqual([{ rates: { at: 10_000, usd: { 10: '60000' } } }]);
  const restarted = new MemoryJournal('j-mine', journal.lines);
  expect(restarted.rateAnchors).toEqual(new Map([[10, { rate: '60000', at: 10_000 }]]));
  expect((await named('61000', 1)).worthOf(10, '1', 0).kind).toBe('known');
  expect((await named('1', 5)).worthOf(10, '1', 0).kind).toBe('unknown');
});
