import { userInfo } from 'node:os';
import { describe, expect, it } from '@jest/globals';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { textWith, useCli } from '../support/cli-rig.js';

/** `payouts cancel`, `retry`, `pause` and `resume`; the rules themselves are in test/operator. */

const cli = useCli();
const WHY = ['--reason', 'wrong file', '--by', 'ann'];
const cancel = (...args: string[]): string[] => ['cancel', ...args, ...WHY];

it('payouts cancel of one cancels it as the system user, and refuses what is not there or not to be cancelled', async () => {
  await cli.enqueue('p-1');
  expect(await cli.runProcess('cancel', 'p-1')).toMatchObject({
    ...{ code: 0, stdout: 'Payout p-1 is cancelled; it will not be sent.\n' },
  });
  expect(await cli.lastChange('p-1')).toMatchObject({ by: userInfo().username });
  const again = /^payouts: Cannot move payout p-1 from cancelled to cancelled: that needs queued, held or rejected\. /;
  expect(await cli.refused(4, again, 'cancel', 'p-1', '--json')).toContain('it is final');
  await cli.refused(3, 'p-9', 'cancel', 'p-9');
  await cli.refused(2, '--reason', 'cancel', 'p-1', '--reason', '');
  await cli.refused(2, '', 'cancel');
});

it('payouts retry of one puts a rejected payout back with a job of its own, for a reason, and no other', async () => {
  await cli.make('rejected', 'p-1');
  const retried = await cli.json('retry', 'p-1', ...WHY);
  expect(retried).toMatchObject({ payoutId: 'p-1', state: 'queued', requeueCount: 1 });
  expect(await cli.jobs()).toEqual(['p-1~1', 'p-1~0']);
  expect(await cli.redis.zcard(cli.keys.outbox)).toBe(0);
  await cli.make('unknown', 'p-2');
  await cli.refused(4, /p-2 from unknown to queued: that needs rejected\. Allowed/, 'retry', 'p-2', ...WHY);
  await cli.refused(2, '--reason', 'retry', 'p-2');
  expect(await cli.states('p-2')).toEqual(['unknown']);
});

/** Accepts p-1 … p-n in the batch May, some with a priority or a time. */
async function importMay(count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, index) => {
    const more = index === 1 ? { priority: 3 } : index === 2 ? { notBefore: '2099-01-01T00:00:00Z' } : {};
    return JSON.stringify({ payoutId: `p-${index + 1}`, paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', ...more });
  });
  await cli.ok('import', await cli.file('may.jsonl', ...rows), '--batch', 'May', '--yes');
}

describe('payouts cancel of many', () => {
  it('--batch counts, cancels what is not sent with every job, leaves the rest, and can be repeated', async () => {
    await importMay(6);
    await cli.enqueue('other');
    await cli.force('p-4', 'rejected');
    await cli.force('p-5', 'in_progress');
    const counted = /^5 payouts queued, held or rejected, 1 in_progress left as they are\n[^]*\n +6 +5 +62\.5\n/;
    expect(await cli.ok(...cancel('--batch', 'May', '--dry-run'))).toMatch(
      new RegExp(`${counted.source}Dry run: nothing was changed\\.\n$`),
    );
    expect(await cli.jobs()).toHaveLength(7);
    expect(await cli.ok(...cancel('--batch', 'May', '--yes'))).toMatch(/5 payouts cancelled\.\n$/);
    expect(await cli.states('p-1', 'p-4', 'p-5', 'other')).toEqual(['cancelled', 'cancelled', 'in_progress', 'queued']);
    expect((await cli.jobs()).sort()).toEqual(['other~0', 'p-5~0']);
    expect(await cli.lastChange('p-1')).toMatchObject({ by: 'ann', reason: 'wrong file' });
    // An interrupted command may leave a job.
    await cli.redis.lpush(`${cli.keys.prefix}:withdraw:wait`, 'p-1~0');
    const again = await cli.json(...cancel('--batch', 'May', '--yes'));
    expect(again).toMatchObject({ payouts: 0, changed: 0, refused: 0 });
    expect((await cli.jobs()).sort()).toEqual(['other~0', 'p-5~0']);
  });

  it('is one act in the activity, and leaves a payout that begins to be sent meanwhile', async () => {
    await importMay(130);
    // It is sent after it was counted: its index has it still.
    await cli.alter('p-78', { state: 'sending' });
    expect(await cli.json(...cancel('--state', 'queued', '--yes'))).toMatchObject({ changed: 129 });
    expect(await cli.states('p-78')).toEqual(['sending']);
    const { activities } = await readActivity(cli.ledger.connection, 9);
    expect(activities).toMatchObject([{ what: 'cancelled', count: 129, by: 'ann', reason: 'wrong file' }]);
    expect(await cli.ok('activity')).toMatch(/ann +129 payouts cancelled +wrong file\n$/);
  });

  it('--file takes what the file names, and nothing where one is not there', async () => {
    await importMay(3);
    const missing = await cli.file('missing.csv', 'payout_id', 'p-1', 'p-9');
    const { code, stderr } = await cli.run(...cancel('--file', missing, '--yes'));
    expect([code, stderr]).toEqual([2, textWith(/line 3: payout p-9 not found/)]);
    expect(await cli.states('p-1')).toEqual(['queued']);
    const file = await cli.file('some.csv', 'payoutId,reference', 'p-1,x', 'p-3,y');
    expect(await cli.run(...cancel('--file', file, '--yes'))).toMatchObject({ code: 0 });
    expect(await cli.states('p-1', 'p-2', 'p-3')).toEqual(['cancelled', 'queued', 'cancelled']);
  });

  it('asks at a terminal, naming how many and of which account, and changes nothing without a yes', async () => {
    await importMay(2);
    const stopped = await cli.answered('', ...cancel('--state', 'queued'));
    expect(stopped).toMatchObject({ code: 1, stderr: textWith(/Nothing was changed/) });
    expect(stopped.asked).toContain(`Cancel 2 payouts of account ${cli.platformId}, never to be sent again? [y/N]`);
    expect(await cli.states('p-1', 'p-2')).toEqual(['queued', 'queued']);
    expect(await cli.answered('y', ...cancel('--state', 'queued'))).toMatchObject({ code: 0 });
    expect(await cli.states('p-1', 'p-2')).toEqual(['cancelled', 'cancelled']);
  });

  it('wants --yes where nobody can be asked, a choice, and a reason', async () => {
    await importMay(1);
    for (const [args, message] of [
      [cancel('--batch', 'May'), /--yes: is required/],
      [cancel('--yes'), /give a payoutId, --batch, --state, --message or --file/],
      [cancel('p-1', '--batch', 'May'), /are for many payouts: leave the payoutId out/],
      [cancel('--batch', 'May', '--file', 'x', '--yes'), /--file or --batch, not both/],
      [['cancel', '--batch', 'May', '--yes'], /many payouts need a --reason/],
      [cancel('--state', 'completed', '--yes'), /Allowed choices are queued, held, rejected/],
      [cancel('--message', ' ', '--yes'), /--message: must not be empty/],
    ] as [string[], RegExp][]) {
      await cli.refused(2, message, ...args);
    }
    await cli.refused(3, /^payouts: Batch June not found\n$/, ...cancel('--batch', 'June', '--yes'));
    expect(await cli.states('p-1')).toEqual(['queued']);
  });
});

it('payouts retry of many takes those whose message has a text, and leaves one that was retried so before', async () => {
  const IDS = ['p-1', 'p-2', 'p-3'];
  await importMay(3);
  for (const payoutId of IDS) {
    await cli.force(payoutId, 'rejected');
    await cli.alter(payoutId, { message: payoutId === 'p-3' ? 'Wrong address' : 'Insufficient balance' });
  }
  const retry = (...args: string[]): string[] => ['retry', ...args, '--yes', ...WHY];
  const none = await cli.ok(...retry('--message', 'no such text'));
  expect(none).toBe('0 payouts rejected\n0 payouts queued again.\n');
  const retried = await cli.json(...retry('--message', 'insufficient'));
  expect(retried).toMatchObject({ payouts: 2, changed: 2, others: {} });
  const facts = { currencies: [{ paymentId: 6, name: 'USDT (TRC-20)' }], currenciesAt: Date.now() };
  await cli.redis.hset(cli.keys.gateway, { currencies: JSON.stringify(facts) });
  expect(await cli.ok(...retry('--state', 'rejected'))).toMatch(
    /^1 payout rejected\n.* +6 +1 +12\.5 USDT \(TRC-20\)\n1 payout queued again\.\n$/s,
  );
  expect(await cli.states(...IDS)).toEqual(['queued', 'queued', 'queued']);
  expect(await cli.jobs()).toEqual(expect.arrayContaining(IDS.map((payoutId) => `${payoutId}~1`)));
  await cli.force('p-2', 'rejected');
  expect((await cli.run(...retry('--batch', 'May'))).stdout).toMatch(
    /^0 payouts rejected, 2 queued left as they are\n1 payout left as they are: decided so/,
  );
  const other = await cli.run('retry', '--batch', 'May', '--yes', '--reason', 'topped up more');
  expect(other.stdout).toMatch(/1 payout queued again/);
});

describe('payouts pause and resume', () => {
  it('pause and resume the account, and say when it stood so before', async () => {
    const paused = { changed: true, paused: true, pausedReason: 'maintenance', pausedBy: 'ann' };
    expect(await cli.json('pause', '--reason', 'maintenance', '--by', 'ann')).toMatchObject(paused);
    expect(await cli.ok('pause', '--reason', 'another')).toMatch(/was already paused: maintenance \(by ann\)/);
    expect(await cli.ok('resume')).toMatch(/sends again\.\n$/);
    expect(await cli.ok('resume')).toMatch(/was not paused\.\n$/);
    await cli.refused(2, '--reason', 'pause', '--reason', 'two\nlines');
    for (const reason of ['WHY', '<why>']) {
      await cli.refused(2, /--reason: must be your own/, 'pause', '--reason', reason);
    }
  });

  it('end with 1 where the replicas that REDIS_REPLICAS asks for do not have it, and can be asked for again', async () => {
    cli.env['REDIS_REPLICAS'] = '1';
    const unconfirmed = /only 0 of 1 replicas acknowledged it .*may or may not be kept; asking again is safe/;
    await cli.refused(1, unconfirmed, 'pause', '--reason', 'maintenance');
    delete cli.env['REDIS_REPLICAS'];
    expect(await cli.ok('pause')).toMatch(/was already paused: maintenance/);
  });
});
