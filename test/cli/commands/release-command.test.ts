import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

const IDS = ['p-1', 'p-2', 'p-3'];
const WHY = ['--reason', 'the key is known now', '--by', 'ann'];
const SAYS = 'the signature expired';

async function hold(...payoutIds: string[]): Promise<void> {
  const sender = new RedisSenderLedger(account.ledger.connection, 'reply');
  for (const payoutId of payoutIds) {
    await account.enqueue(payoutId, '--batch', 'May');
    const message = payoutId === 'p-3' ? 'over the limit of the day' : SAYS;
    expect(await sender.holdPayout(payoutId, 0, { ...HOLD, message })).toBe(true);
  }
}

const states = async () => Promise.all(IDS.map(async (payoutId) => (await account.ledger.get(payoutId))?.state));

describe('payouts release', () => {
  it('puts a held payout back with a job of its own', async () => {
    await hold('p-1');
    const result = await account.runProcess('release', 'p-1', ...WHY, '--json');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(result.stdout)).toMatchObject({ payoutId: 'p-1', state: 'queued', requeueCount: 1 });
    const { redis, keys } = account.ledger.connection;
    expect(await redis.lrange(`${keys.prefix}:withdraw:wait`, 0, -1)).toContain('p-1~1');
    expect(await redis.zcard(keys.outbox)).toBe(0);
  });

  it('puts back several that are named, without asking', async () => {
    await hold(...IDS);
    const result = await account.run('release', 'p-1', 'p-2', ...WHY);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(/^2 payouts held\n.*2 payouts queued again\.\n$/s);
    expect(await states()).toEqual(['queued', 'queued', 'held']);
  });

  it('changes none of several where one does not exist', async () => {
    await hold('p-1');
    expect(await account.run('release', 'p-1', 'nobody', ...WHY)).toMatchObject({ code: 2 });
    expect((await account.ledger.get('p-1'))?.state).toBe('held');
  });

  it.each([
    [
      ['--state', 'held'],
      ['queued', 'queued', 'queued'],
    ],
    [
      ['--batch', 'May'],
      ['queued', 'queued', 'queued'],
    ],
    [
      ['--message', 'EXPIRED'],
      ['queued', 'queued', 'held'],
    ],
    [
      ['--state', 'held', '--dry-run'],
      ['held', 'held', 'held'],
    ],
  ])('%j chooses many', async (options, expected) => {
    await hold(...IDS);
    expect(await account.run('release', ...options, '--yes', ...WHY)).toMatchObject({ code: 0 });
    expect(await states()).toEqual(expected);
  });

  it.each([
    [['p-1', '--attempt', '1'], /--attempt: states under signature/],
    [['p-1', '--attempt', '0', '--key', 'ann.pem'], /--attempt: must be a whole number from 1 on, not "0"/],
    [['p-1', '--attempt', '1e3', '--key', 'ann.pem'], /not "1e3"/],
  ])('refuses %j', async (options, message) => {
    await hold('p-1');
    const refused = await account.run('release', ...options, ...WHY);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(message);
    expect((await account.ledger.get('p-1'))?.state).toBe('held');
  });

  it('refuses what is not held, and names the command that is meant', async () => {
    await account.enqueue('p-1');
    await account.force('p-1', 'rejected');
    const refused = await account.run('release', 'p-1', ...WHY);
    expect(refused.code).toBe(4);
    expect(refused.stderr).toMatch(/that needs held\. Allowed from rejected: queued, cancelled\. `payouts retry`/);
    expect(await account.run('release', 'p-1')).toMatchObject({ code: 2 });
    expect(await account.run('release', ...WHY)).toMatchObject({ code: 2 });
    expect(await account.run('release', 'p-1', '--state', 'held', ...WHY)).toMatchObject({ code: 2 });
  });
});

describe('a held payout', () => {
  it('says in get, list and stats why it is held', async () => {
    await hold('p-1');
    const shown = await account.run('get', 'p-1');
    expect(shown.stdout).toMatch(/held: not sent/);
    expect(shown.stdout).toMatch(/held +signature \(expired\): the signature expired\n/);
    expect(JSON.parse((await account.run('get', 'p-1', '--json')).stdout)).toMatchObject({
      state: 'held',
      held: { kind: 'signature', reason: 'expired', message: SAYS },
    });
    expect((await account.run('list', '--state', 'held')).stdout).toMatch(/p-1 .*the signature expired/);
    expect((await account.run('list', '--state', 'held', '--csv')).stdout).toMatch(/held,.*the signature expired/);
    expect(JSON.parse((await account.run('stats', '--json')).stdout)).toMatchObject({ held: 1, queued: 0 });
  });

  it('is cancelled with one command, alone or with its batch', async () => {
    await hold(...IDS);
    expect(await account.run('cancel', 'p-1', ...WHY)).toMatchObject({ code: 0 });
    expect(await account.run('cancel', '--batch', 'May', '--yes', ...WHY)).toMatchObject({ code: 0 });
    expect(await states()).toEqual(['cancelled', 'cancelled', 'cancelled']);
  });

  it('is told of in the events, and where someone altered it, as tampering', async () => {
    await hold('p-1');
    await account.enqueue('p-2');
    const sender = new RedisSenderLedger(account.ledger.connection, 'reply');
    await sender.holdPayout('p-2', 0, { ...HOLD, reason: 'wrong', message: 'it was altered', isTampering: true });
    const lines = (await account.run('events')).stdout.split('\n');
    expect(lines.filter((line) => line.includes('tampering'))).toEqual([
      expect.stringMatching(/p-2 +tampering +wrong: it was altered$/),
    ]);
    expect(lines.filter((line) => /queued → held/.test(line))).toHaveLength(2);
  });
});
