import { expect, it } from '@jest/globals';
import { UsdRates } from '../../../src/control/policy/usd-rates.js';
import { DEFAULT_USD, parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import { keepRates } from '../../../src/worker/policy/keep-rates.js';
import { silentLogger } from '../../../src/logger.js';

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
  await keepRates({ rates, policy: () => policy, gateway, clock, logger: silentLogger }, end.signal);
  return minutes;
}

it('fetches rates every five minutes, and more often where the policy takes them for old sooner', async () => {
  expect(await fetchedAt(policyOf({}, { usd: '10' }))).toEqual([0, 5, 10, 15, 20]);
  expect(await fetchedAt(policyOf({ maxAge: '8m' }, { usd: '10' }))).toEqual([0, 4, 8, 12, 16, 20]);
});

it('asks again soon where the gateway does not answer, and never where no rule is in dollars', async () => {
  const minutes = await fetchedAt(policyOf({}, { usd: '10' }), (minute) => minute > 4 && minute < 5.3);
  expect(minutes.slice(0, 5).map((minute) => Math.round(minute * 60))).toEqual([0, 300, 310, 320, 620]);
  expect(await fetchedAt(policyOf({}, { amount: '1' }))).toEqual([]);
});
