import { describe, expect, it } from '@jest/globals';
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
    const message = payoutId === 'p-3' ? 'over the limit of the day' : SAYS;
    expect(await sender.holdPayout(payoutId, 0, { ...HOLD, message })).toBe(true);
  }
}

describe('payouts release', () => {
  it('puts a held payout back with a job of its own', async () => {
    await hold('p-1');
    const released = await cli.json('release', 'p-1', ...WHY);
    expect(released).toMatchObject({ payoutId: 'p-1', state: 'queued', requeueCount: 1 });
    expect(await cli.jobs()).toContain('p-1~1');
    expect(await cli.redis.zcard(cli.keys.outbox)).toBe(0);
  });

  it('puts back several that are named, without asking, and none where one does not exist', async () => {
    await hold(...IDS);
    expect(await cli.run('release', 'p-1', 'nobody', ...WHY)).toMatchObject({ code: 2 });
    expect(await cli.states(...IDS)).toEqual(['held', 'held', 'held']);
    expect(await cli.ok('release', 'p-1', 'p-2', ...WHY)).toMatch(/^2 payouts held\n.*2 payouts queued again\.\n$/s);
    expect(await cli.states(...IDS)).toEqual(['queued', 'queued', 'held']);
  });

  it.each([
    ['--state held', 'queued,queued,queued'],
    ['--batch May', 'queued,queued,queued'],
    ['--message EXPIRED', 'queued,queued,held'],
    ['--state held --dry-run', 'held,held,held'],
  ])('%s chooses many', async (options, expected) => {
    await hold(...IDS);
    await cli.ok('release', ...options.split(' '), '--yes', ...WHY);
    expect((await cli.states(...IDS)).join()).toBe(expected);
  });

  it('refuses an attempt that is none, or without a key', async () => {
    await hold('p-1');
    const attempt = ['release', 'p-1', ...WHY, '--attempt'];
    await cli.refused(2, /--attempt: states under signature/, ...attempt, '1');
    const whole = /--attempt: must be a whole number from 1 on, not "0"/;
    await cli.refused(2, whole, ...attempt, '0', '--key', 'ann.pem');
    await cli.refused(2, /not "1e3"/, ...attempt, '1e3', '--key', 'ann.pem');
    expect(await cli.states('p-1')).toEqual(['held']);
  });

  it('refuses what is not held, and names the command that is meant', async () => {
    await cli.make('rejected', 'p-1');
    const meant = /that needs held\. Allowed from rejected: queued, cancelled\. `payouts retry`/;
    await cli.refused(4, meant, 'release', 'p-1', ...WHY);
    for (const args of [['p-1'], WHY, ['p-1', '--state', 'held', ...WHY]]) await cli.refused(2, '', 'release', ...args);
  });
});

describe('a held payout', () => {
  it('says in get, list and stats why it is held', async () => {
    await hold('p-1');
    expect(await cli.ok('get', 'p-1')).toMatch(
      /held: not sent[^]*held +signature \(expired\): the signature expired\n/,
    );
    const held = { kind: 'signature', reason: 'expired', message: SAYS };
    expect(await cli.json('get', 'p-1')).toMatchObject({ state: 'held', held });
    expect(await cli.ok('list', '--state', 'held')).toMatch(/p-1 .*the signature expired/);
    expect(await cli.ok('list', '--state', 'held', '--csv')).toMatch(/held,.*the signature expired/);
    expect(await cli.json('stats')).toMatchObject({ held: 1, queued: 0 });
  });

  it('is cancelled with one command, alone or with its batch', async () => {
    await hold(...IDS);
    await cli.ok('cancel', 'p-1', ...WHY);
    await cli.ok('cancel', '--batch', 'May', '--yes', ...WHY);
    expect(await cli.states(...IDS)).toEqual(['cancelled', 'cancelled', 'cancelled']);
  });

  it('is in the events, and where someone altered it, as tampering', async () => {
    await hold('p-1');
    await cli.enqueue('p-2');
    const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
    await sender.holdPayout('p-2', 0, { ...HOLD, reason: 'wrong', message: 'it was altered', isTampering: true });
    const events = await cli.ok('events');
    expect(events.match(/.*tampering.*/g)).toEqual([expect.stringMatching(/p-2 +tampering +wrong: it was altered$/)]);
    expect(events.match(/queued → held/g)).toHaveLength(2);
  });
});
