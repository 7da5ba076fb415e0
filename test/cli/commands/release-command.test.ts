import { expect, it } from '@jest/globals';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { useCli } from '../support/cli-rig.js';

const cli = useCli();
const IDS = ['p-1', 'p-2', 'p-3'];
const WHY = ['--reason', 'the key is known now', '--by', 'ann'];
const SAYS = 'the signature expired';

async function hold(...payoutIds: string[]): Promise<void> {
  const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
  for (const payoutId of payoutIds) {
    await cli.enqueue(payoutId, '--batch', 'May');
    const [message, isTampering] = payoutId === 'p-3' ? ['it was altered', true] : [SAYS, false];
    expect(await sender.holdPayout(payoutId, 0, { ...HOLD, message, isTampering })).toBe(true);
  }
}
const states = async (): Promise<string> => (await cli.states(...IDS)).join();

it('payouts release puts held payouts back, each with a job of its own, and none where one does not exist', async () => {
  await hold(...IDS);
  expect(await cli.run('release', 'p-1', 'nobody', ...WHY)).toMatchObject({ code: 2 });
  expect(await states()).toBe('held,held,held');
  const released = await cli.json('release', 'p-1', ...WHY);
  expect(released).toMatchObject({ payoutId: 'p-1', state: 'queued', requeueCount: 1 });
  expect(await cli.jobs()).toContain('p-1~1');
  expect(await cli.redis.zcard(cli.keys.outbox)).toBe(0);
  expect(await cli.ok('release', 'p-2', 'p-3', ...WHY)).toMatch(/^2 payouts held\n.*2 payouts queued again\.\n$/s);
});

it.each([
  ['--state held --dry-run', 'held,held,held'],
  ['--message EXPIRED', 'queued,queued,held'],
  ['--batch May', 'queued,queued,queued'],
])('payouts release %s chooses many', async (options, expected) => {
  await hold(...IDS);
  await cli.ok('release', ...options.split(' '), '--yes', ...WHY);
  expect(await states()).toBe(expected);
});

it('payouts release refuses what is not held, and an attempt that is none, or without a key', async () => {
  await hold('p-1');
  const attempt = ['release', 'p-1', ...WHY, '--attempt'];
  await cli.refused(2, /--attempt: states under signature/, ...attempt, '1');
  const whole = /--attempt: must be a whole number from 1 on, not "0"/;
  await cli.refused(2, whole, ...attempt, '0', '--key', 'ann.pem');
  expect(await cli.states('p-1')).toEqual(['held']);
  await cli.make('rejected', 'p-2');
  const meant = /that needs held\. Allowed from rejected: queued, cancelled\. `payouts retry`/;
  await cli.refused(4, meant, 'release', 'p-2', ...WHY);
  for (const args of [['p-1'], WHY, ['p-1', '--state', 'held', ...WHY]]) await cli.refused(2, '', 'release', ...args);
});

it('a held payout is shown with why by get, list, stats and events', async () => {
  await hold(...IDS);
  expect(await cli.ok('get', 'p-1')).toMatch(/held: not sent[^]*held +signature \(expired\): the signature expired\n/);
  const held = { kind: 'signature', reason: 'expired', message: SAYS };
  expect(await cli.json('get', 'p-1')).toMatchObject({ state: 'held', held });
  expect(await cli.ok('list', '--state', 'held')).toMatch(/p-1 .*the signature expired/);
  expect(await cli.ok('list', '--state', 'held', '--csv')).toMatch(/held,.*the signature expired/);
  expect(await cli.json('stats')).toMatchObject({ held: 3, queued: 0 });
  const events = await cli.ok('events');
  expect(events.match(/.*tampering.*/g)).toEqual([expect.stringMatching(/p-3 +tampering +expired: it was altered$/)]);
  expect(events.match(/queued → held/g)).toHaveLength(3);
});
