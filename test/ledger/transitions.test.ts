import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { renderStatesDoc } from '../../scripts/states-doc.js';
import { LedgerKeys } from '../../src/ledger/keys.js';
import {
  FINAL_STATES,
  OPERATOR_STATES,
  PAYOUT_STATES,
  type PayoutState,
  reachableFrom,
  SETTLED_STATES,
  STATES_WITH_JOB,
  statesInQueueOf,
  TRANSITIONS,
  UNSENT_STATES,
  URGENT_STATES,
  waitsFor,
  WATCHED_STATES,
} from '../../src/ledger/states.js';
import { change, connection, enter, keys, redis, stateOf, unchanged, useAccount } from './support/use-account.js';
import { readIndex } from '../../src/ledger/payout-queries.js';

const WAYS = TRANSITIONS.map(({ from, to }) => `${from} ${to}`);
const PAIRS = PAYOUT_STATES.flatMap((from) => PAYOUT_STATES.map((to) => [from, to] as const));
const isTransition = ([from, to]: readonly [PayoutState, PayoutState]) => WAYS.includes(`${from} ${to}`);

describe('the scripts', () => {
  useAccount();

  it.each(PAIRS.filter(isTransition))('make the transition %s → %s', async (from, to) => {
    await enter(from, 'p');
    await change('p', from, to);
    expect(await stateOf('p')).toBe(to);
    for (const state of PAYOUT_STATES) {
      const entries = await readIndex(connection, keys.stateIndex(state), { limit: 9 });
      expect([state, entries]).toMatchObject([state, state === to ? [{ payoutId: 'p' }] : []]);
      expect(entries).toHaveLength(state === to ? 1 : 0);
    }
  });

  it.each(PAYOUT_STATES)(
    'refuse from %s whatever the table does not know, before anything is written',
    async (from) => {
      await enter(from, 'p');
      await unchanged(async () => {
        for (const [, to] of PAIRS.filter((pair) => pair[0] === from && !isTransition(pair))) {
          const refused = change('p', from, to, { gatewayId: 'h', fee: '1', message: 'm' });
          await expect(refused).rejects.toThrow(`no transition from ${from} to ${to}`);
        }
      });
    },
  );

  it('refuse a change that is about one attempt once another one was begun', async () => {
    await enter('unknown', 'p');
    await redis.hset(keys.payout('p'), 'attempt', 2);
    const refused = async () => change('p', 'unknown', 'queued', { attempt: 1 }).catch((error: unknown) => error);
    const message = expect.stringMatching(/was sent again meanwhile \(attempt 2\)/);
    expect(await unchanged(refused)).toMatchObject({ code: 'CONFLICT', message });
    await change('p', 'unknown', 'queued', { attempt: 2 });
    expect(await stateOf('p')).toBe('queued');
  });
});

it('the table leads from every state to a final one, and waits for someone where one leads on', () => {
  expect(FINAL_STATES).toEqual(['completed', 'failed', 'cancelled', 'written_off']);
  for (const state of PAYOUT_STATES) {
    const reached = new Set<PayoutState>([state]);
    for (const from of reached) for (const to of reachableFrom(from)) reached.add(to);
    expect(FINAL_STATES.some((final) => reached.has(final))).toBe(true);
    const isFinal = FINAL_STATES.includes(state);
    expect([state, reachableFrom(state).length === 0, waitsFor(state) === null]).toEqual([state, isFinal, isFinal]);
  }
});

it('the table leads back to queued only by an operator or a proof', () => {
  const back = TRANSITIONS.filter(({ to }) => to === 'queued').map(({ from, when }) => [from, when]);
  expect(back).toEqual([
    ['held', expect.stringMatching(/^the policy lets it pass, an operator releases it .*, or it is enqueued again/)],
    ['sending', 'it is proved that nothing was sent'],
    ['rejected', 'an operator retries it'],
    ['unknown', 'an operator states that it was not sent'],
  ]);
});

it('the table has the lists that the ledger, the queues and the dashboard go by', () => {
  expect(STATES_WITH_JOB).toEqual(['queued', 'in_progress']);
  expect(STATES_WITH_JOB.map(statesInQueueOf)).toEqual([['queued', 'sending'], ['in_progress']]);
  expect(WATCHED_STATES).toEqual(['queued', 'held', 'sending', 'in_progress', 'unknown']);
  expect(UNSENT_STATES).toEqual(['queued', 'held', 'rejected']);
  expect(SETTLED_STATES).toEqual(['completed', 'failed', 'cancelled', 'written_off', 'held', 'rejected', 'unknown']);
  expect(URGENT_STATES).toEqual(['unknown', 'rejected', 'failed', 'held']);
});

it('the table is in docs/states.md as `npm run docs` makes it, and in an alert for each decision', () => {
  expect(readFileSync('docs/states.md', 'utf8')).toBe(renderStatesDoc());
  const alerts = readFileSync('docs/alerts.yml', 'utf8');
  for (const state of OPERATOR_STATES) {
    expect(alerts).toContain(`payouts list --account {{ $labels.platform_id }} --state ${state}`);
  }
});

it('every key of an account has the hash tag that keeps it in one slot', () => {
  const keys = new LedgerKeys(42);
  const some = [keys.ledger, keys.sender, keys.outbox, keys.events, keys.payout('p'), keys.state('queued')];
  const rest = ['ledger', 'sender', 'outbox', 'events', 'payout:p', 'state:queued', 'batch:b'];
  expect([keys.prefix, ...some, keys.batch('b')]).toEqual([
    '{payouts:42}',
    ...rest.map((name) => `{payouts:42}:${name}`),
  ]);
});
