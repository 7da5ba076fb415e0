import { userInfo } from 'node:os';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { HOLD, takeLease } from '../../ledger/contract/ledger-rig.js';
import { until } from '../../support/until.js';
import { textWith, useCli } from '../support/cli-rig.js';

/** `payouts cancel`, `retry`, `release`, `pause` and `resume`; the rules themselves are in test/operator. */

const cli = useCli();
const WHY = ['--reason', 'wrong file', '--by', 'ann'];
const cancel = (...args: string[]) => ['cancel', ...args, ...WHY];

it('payouts cancel of one cancels it as the system user', async () => {
  await cli.enqueue('p-1');
  const cancelled = await cli.ok('cancel', 'p-1');
  expect(cancelled).toMatch(
    new RegExp(
      `^Payout p-1 is cancelled; it will not be sent\\.\\nNo worker is known to have it on its disk\\. Keep this command: .*, run it again\\.\\nA mistake\\? .*: \`payouts uncancel --account ${cli.platformId} p-1 --reason WHY\`\\n$`,
    ),
  );
  expect(await cli.lastChange('p-1')).toMatchObject({ by: userInfo().username });
  await cli.refused(4, /^payouts: Cannot move payout p-1 from cancelled .*it is final/, 'cancel', 'p-1', '--json');
  await cli.refused(3, 'p-9', 'cancel', 'p-9');
  await cli.refused(2, '--reason', 'cancel', 'p-1', '--reason', '');
  await cli.refused(2, '', 'cancel');
});

/** Accepts p-1 … p-n in the batch May, some with a priority or a time. */
async function importMay(count: number) {
  const rows = Array.from({ length: count }, (_, index) => {
    const more = index === 1 ? { priority: 3 } : index === 2 ? { notBefore: '2099-01-01T00:00:00Z' } : {};
    return JSON.stringify({ payoutId: `p-${index + 1}`, paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', ...more });
  });
  await cli.ok('import', await cli.file('may.jsonl', ...rows), '--batch', 'May', '--yes');
}

it('payouts cancel of many --batch counts, cancels what is not sent with every job, leaves the rest', async () => {
  await importMay(6);
  await cli.enqueue('other');
  await cli.force('p-4', 'rejected');
  await cli.force('p-5', 'in_progress');
  expect(await cli.ok(...cancel('--batch', 'May', '--dry-run'))).toMatch(
    /^5 payouts queued, held or rejected, 1 in_progress left as they are\n[^]*\n +6 +5 +62\.5\nDry run: nothing was changed\.\n$/,
  );
  expect(await cli.jobs()).toHaveLength(7);
  expect(await cli.ok(...cancel('--batch', 'May', '--yes'))).toMatch(/5 payouts cancelled\.\nNo worker is known/);
  expect(await cli.states('p-1', 'p-4', 'p-5', 'other')).toEqual(['cancelled', 'cancelled', 'in_progress', 'queued']);
  expect((await cli.jobs()).sort()).toEqual(['other~0', 'p-5~0']);
  expect(await cli.lastChange('p-1')).toMatchObject({ by: 'ann', reason: 'wrong file' });
  // An interrupted command may leave a job.
  await cli.redis.lpush(`${cli.keys.prefix}:withdraw:wait`, 'p-1~0');
  expect(await cli.json(...cancel('--batch', 'May', '--yes'))).toMatchObject({ payouts: 0, changed: 0, refused: 0 });
  expect((await cli.jobs()).sort()).toEqual(['other~0', 'p-5~0']);
});

it('payouts uncancel pays after all what the command that cancelled names, each once', async () => {
  await importMay(3);
  await cli.force('p-3', 'rejected');
  await cli.alter('p-3', { attempt: '1' });
  const said = await cli.ok(...cancel('--batch', 'May', '--yes'));
  const [, offered = ''] = /`payouts (uncancel .*)`\n$/.exec(said) ?? [];
  expect(offered).toBe(`uncancel --account ${cli.platformId} --batch May --cancelled-for 'wrong file' --reason WHY`);
  const uncancel = [
    'uncancel',
    '--batch',
    'May',
    '--cancelled-for',
    'wrong file',
    '--reason',
    'it was right',
    '--by',
    'bob',
  ];
  const early = await cli.run(...uncancel, '--yes');
  expect(early).toMatchObject({ code: 4, stderr: textWith('no worker has the cancellation on its disk') });
  await cli.redis.del(cli.keys.unkept);
  expect(await cli.json('uncancel', '--cancelled-for', 'other', '--yes', ...WHY)).toMatchObject({ payouts: 0 });
  expect(await cli.ok(...uncancel, '--dry-run')).toMatch(/^3 payouts cancelled\n[^]*Dry run: nothing was changed\.\n$/);
  await cli.refused(2, '--yes: is required', ...uncancel);
  const { code, stdout, stderr } = await cli.run(...uncancel, '--yes');
  expect({ code, stdout, stderr }).toMatchObject({
    ...{ code: 4, stdout: textWith('2 payouts accepted under new ids.\n') },
    stderr: textWith('payout p-3 is not undone: an attempt of it was begun'.replace('payout', 'Payout')),
  });
  expect(await cli.states('p-1.again', 'p-2.again', 'p-3.again')).toEqual(['queued', 'queued', undefined]);
  expect((await cli.jobs()).sort()).toEqual(['p-1.again~0', 'p-2.again~0']);
  expect(await cli.ok('uncancel', 'p-1', ...WHY)).toBe(
    'Payout p-1 stays cancelled; its payment is p-1.again now, queued.\n',
  );
  const { activities } = await readActivity(cli.ledger.connection, 1);
  expect(activities).toMatchObject([{ what: 'undone', count: 2, by: 'bob' }]);
  await cli.refused(2, 'leave the payoutId out', 'uncancel', 'p-1', '--batch', 'May', ...WHY);
  await cli.refused(2, 'give a payoutId', 'uncancel', ...WHY);
});

it('payouts hold and release of a batch are one act each, and hold what a rule holds', async () => {
  await importMay(4);
  await cli.force('p-4', 'in_progress');
  const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
  await sender.holdPayout('p-3', 0, { ...HOLD, kind: 'policy', reason: 'wait' });
  const ofMay = ['--batch', 'May', ...WHY];
  expect(await cli.ok('hold', ...ofMay, '--dry-run')).toMatch(
    /^3 payouts queued or held, 1 in_progress left as they are\n[^]*Dry run: nothing was changed\.\n$/,
  );
  await cli.refused(2, '--yes: is required', 'hold', ...ofMay);
  expect(await cli.ok('hold', ...ofMay, '--yes')).toMatch(
    /3 payouts held\.\nNo worker is known to have it on its disk/,
  );
  expect(await cli.states('p-1', 'p-2', 'p-3', 'p-4')).toEqual(['held', 'held', 'held', 'in_progress']);
  for (const payoutId of ['p-1', 'p-3']) {
    expect((await cli.ledger.get(payoutId))?.held).toMatchObject({
      kind: 'person',
      message: textWith('ann holds it: wrong file'),
    });
  }
  expect(await cli.ok('get', 'p-3')).toMatch(
    /held +person \(by_hand\): ann holds it: wrong file\. Only `payouts release` ends that\n/,
  );
  const released = await cli.json('release', '--batch', 'May', '--yes', '--reason', 'it is right', '--by', 'ann');
  expect(released).toMatchObject({ changed: 3, refused: 0 });
  expect(await cli.states('p-1', 'p-2', 'p-3')).toEqual(['queued', 'queued', 'queued']);
  const { activities } = await readActivity(cli.ledger.connection, 9);
  expect(activities.map(({ what, count }) => `${what} ${count}`)).toEqual(['released 3', 'held 1', 'held 2']);
  await cli.refused(4, 'that needs queued or held', 'hold', 'p-4', ...WHY);
  expect(await cli.ok('hold', 'p-1', ...WHY)).toMatch(/^Payout p-1 is held, until `payouts release`\.\nNo worker/);
});

it('payouts cancel of many is one act in the activity, and leaves a payout that begins to be sent meanwhile', async () => {
  await importMay(130);
  // It is sent after it was counted: its index has it still.
  await cli.alter('p-78', { state: 'sending' });
  expect(await cli.json(...cancel('--state', 'queued', '--yes'))).toMatchObject({ changed: 129 });
  expect(await cli.states('p-78')).toEqual(['sending']);
  const { activities } = await readActivity(cli.ledger.connection, 9);
  expect(activities).toMatchObject([{ what: 'cancelled', count: 129, by: 'ann', reason: 'wrong file' }]);
  expect(await cli.ok('activity')).toMatch(/ann +129 payouts \(state queued\) cancelled +wrong file\n$/);
});

it('payouts cancel of many --file takes what the file names, and nothing where one is not there', async () => {
  await importMay(3);
  const missing = await cli.file('missing.csv', 'payout_id', 'p-1', 'p-9');
  const { code, stderr } = await cli.run(...cancel('--file', missing, '--yes'));
  expect([code, stderr]).toEqual([2, textWith(/line 3: payout p-9 not found/)]);
  expect(await cli.states('p-1')).toEqual(['queued']);
  const file = await cli.file('some.csv', 'payoutId,reference', 'p-1,x', 'p-3,y');
  expect(await cli.run(...cancel('--file', file, '--yes'))).toMatchObject({ code: 0 });
  expect(await cli.states('p-1', 'p-2', 'p-3')).toEqual(['cancelled', 'queued', 'cancelled']);
});

it('payouts cancel of many asks at a terminal, naming how many and of which account', async () => {
  await importMay(2);
  const stopped = await cli.answered('', ...cancel('--state', 'queued'));
  expect(stopped).toMatchObject({ code: 1, stderr: textWith(/Nothing was changed/) });
  expect(stopped.asked).toContain(`Cancel 2 payouts of account ${cli.platformId}, never to be sent again? [y/N]`);
  expect(await cli.states('p-1', 'p-2')).toEqual(['queued', 'queued']);
});

it('payouts cancel of many wants --yes where nobody can be asked, a choice, and a reason', async () => {
  await importMay(1);
  for (const [args, message] of [
    [cancel('--batch', 'May'), /--yes: is required/],
    [cancel('--yes'), /give a payoutId, --batch, --state, --message or --file/],
    [cancel('p-1', '--batch', 'May'), /are for many payouts: leave the payoutId out/],
    [['cancel', '--batch', 'May', '--yes'], /many payouts need a --reason/],
  ] as [string[], RegExp][]) {
    await cli.refused(2, message, ...args);
  }
  await cli.refused(3, /^payouts: Batch June not found\n$/, ...cancel('--batch', 'June', '--yes'));
  expect(await cli.states('p-1')).toEqual(['queued']);
});

it('payouts retry takes one, or those whose message has a text', async () => {
  const IDS = ['p-1', 'p-2', 'p-3'];
  await importMay(3);
  for (const payoutId of IDS) {
    await cli.force(payoutId, 'rejected');
    await cli.alter(payoutId, { message: payoutId === 'p-3' ? 'Wrong address' : 'Insufficient balance' });
  }
  const retry = (...args: string[]) => ['retry', ...args, '--yes', ...WHY];
  const retried = await cli.json(...retry('--message', 'insufficient'));
  expect(retried).toMatchObject({ payouts: 2, changed: 2, others: {} });
  expect(await cli.json('retry', 'p-3', ...WHY)).toMatchObject({ payoutId: 'p-3', state: 'queued', requeueCount: 1 });
  expect(await cli.jobs()).toEqual(expect.arrayContaining(IDS.map((payoutId) => `${payoutId}~1`)));
  await cli.force('p-2', 'rejected');
  expect((await cli.run(...retry('--batch', 'May'))).stdout).toMatch(
    /^0 payouts rejected, 2 queued left as they are\n1 payout left as they are: decided so/,
  );
});

describe('payouts release', () => {
  const IDS = ['p-1', 'p-2', 'p-3'];
  beforeEach(async () => {
    const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
    for (const payoutId of IDS) {
      await cli.enqueue(payoutId, '--batch', 'May');
      const said = { message: payoutId === 'p-3' ? 'it was altered' : 'the signature expired' };
      expect(await sender.holdPayout(payoutId, 0, { ...HOLD, ...said, isTampering: payoutId === 'p-3' })).toBe(true);
    }
  });
  const states = async () => (await cli.states(...IDS)).join();

  it('puts held payouts back, each with a job of its own', async () => {
    expect(await cli.run('release', 'p-1', 'nobody', ...WHY)).toMatchObject({ code: 2 });
    expect(await states()).toBe('held,held,held');
    const released = await cli.json('release', 'p-1', ...WHY);
    expect(released).toMatchObject({ payoutId: 'p-1', state: 'queued', requeueCount: 1 });
    expect(await cli.jobs()).toContain('p-1~1');
    expect(await cli.redis.zcard(cli.keys.outbox)).toBe(0);
    const all = await cli.ok('release', 'p-2', 'p-3', ...WHY);
    expect(all).toMatch(/^2 payouts held\n.*2 payouts queued again\.\n$/s);
  });

  it('chooses many by an option, and refuses an attempt that is none', async () => {
    const attempt = ['release', 'p-1', ...WHY, '--attempt'];
    await cli.refused(2, /--attempt: states under signature/, ...attempt, '1');
    await cli.refused(2, /--attempt: must be a whole number from 1 on/, ...attempt, '0', '--key', 'ann.pem');
    for (const args of [['p-1'], WHY, ['p-1', '--state', 'held', ...WHY]]) await cli.refused(2, '', 'release', ...args);
    await cli.ok('release', '--message', 'EXPIRED', '--yes', ...WHY);
    expect(await states()).toBe('queued,queued,held');
  });

  it('is said to be needed, and why, by get, list and events', async () => {
    expect(await cli.ok('get', 'p-1')).toMatch(
      /held: not sent[^]*held +signature \(expired\): the signature expired\n/,
    );
    expect(await cli.ok('list', '--state', 'held')).toMatch(/p-1.*the signature expired/);
    expect(await cli.ok('events')).toMatch(/ p-3 +tampering +expired: it was altered\n/);
  });
});

it('payouts cancel writes off what was paid late, and says so', async () => {
  await cli.enqueue('p-1');
  await cli.redis.hset(cli.keys.payout('p-1'), 'lateGatewayId', 'hash-1');
  const said = await cli.ok('cancel', 'p-1', '--reason', 'paid late');
  expect(said).toMatch(/^Payout p-1 is written off, because it was paid late as hash-1; .* Tell its application/);
  expect(await cli.states('p-1')).toEqual(['written_off']);
});

it('payouts cancel says when a worker has it on its disk', async () => {
  await cli.enqueue('p-1');
  const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
  await takeLease(sender, 'one');
  const cancelling = cli.ok('cancel', 'p-1');
  await until('it is cancelled', async () => (await sender.readUnkept(1)).entries.length === 1);
  await sender.noteKept((await sender.readSender()).acts, ['p-1']);
  expect(await cancelling).toMatch(
    /\nWorker one has it on its disk: if Redis comes back without it, the account stops\.\nA mistake\? /,
  );
});

it('payouts cancel of many says what to keep until a worker has it on its disk', async () => {
  await importMay(3);
  const first = await cli.ok(...cancel('--batch', 'May', '--message', 'none', '--yes'));
  expect(first).not.toMatch(/on its disk/);
  expect(await cli.ok(...cancel('p-1', 'p-2'))).toMatch(
    /2 payouts cancelled\.\nNo worker .*run it again\.\nA mistake\? /,
  );
  const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
  await takeLease(sender, 'one');
  const cancelling = cli.run(...cancel('--batch', 'May', '--yes', '--json'));
  await until('all are cancelled', async () => (await sender.readUnkept(9)).entries.length === 3);
  const { acts } = await sender.readSender();
  await sender.noteKept(acts - 1, []);
  await sender.noteKept(acts, ['p-1', 'p-2', 'p-3']);
  expect(await cancelling).toMatchObject({ code: 0, stderr: expect.stringMatching(/\nWorker one has it on its disk/) });
});

it.each([
  ['worker', '5 payouts in a row were rejected: no funds'],
  ['worker host-a:7', 'the gateway blocked the account: too many requests'],
  ['adoption', 'the ledger was adopted: look at what came back, then resume'],
])('payouts resume says that the pause of %s remains, with its reason and its command', async (by, reason) => {
  await cli.ok('pause', '--reason', 'maintenance', '--by', 'ann');
  await cli.ledger.pause(by, reason);
  const quoted = by.includes(' ') ? `'${by}'` : by;
  const { platformId } = cli;
  expect(await cli.ok('resume', '--by', 'ann', '--reason', 'done')).toBe(
    `One pause ended. Account ${platformId} stays paused: ${reason} (by ${by}). If the cause is gone: \`payouts resume --account ${platformId} --of ${quoted} --reason WHY\`\n`,
  );
  expect(await cli.json('stats')).toMatchObject({ paused: true, pausedReason: reason });
  expect(await cli.ok('resume', '--of', by, '--reason', 'looked')).toBe(`Account ${platformId} sends again.\n`);
});

it('payouts pause and resume say when the account stood so before', async () => {
  const paused = { changed: true, paused: true, pausedReason: 'maintenance', pausedBy: 'ann' };
  expect(await cli.json('pause', '--reason', 'maintenance', '--by', 'ann')).toMatchObject(paused);
  const again = /was already paused: maintenance \(by ann\)/;
  expect(await cli.ok('pause', '--reason', 'another', '--by', 'ann')).toMatch(again);
  const both = /is paused: maintenance \(by ann\); audit \(by bob\)/;
  expect(await cli.ok('pause', '--reason', 'audit', '--by', 'bob')).toMatch(both);
  await cli.refused(4, /--of ann --reason WHY`, .*--of bob/, 'resume', '--by', 'zoe');
  expect(await cli.ok('resume', '--by', 'ann')).toMatch(/stays paused: audit \(by bob\)\. .*--of bob --reason WHY`\n$/);
  expect(await cli.ok('resume', '--of', 'bob')).toMatch(/sends again\.\n$/);
  expect(await cli.ok('resume')).toMatch(/was not paused\.\n$/);
  await cli.refused(2, '--reason', 'pause', '--reason', 'two\nlines');
  await cli.refused(2, '--reason: must be your own', 'pause', '--reason', '<why>');
  cli.env['REDIS_REPLICAS'] = '1';
  const unconfirmed = /only 0 of 1 replicas acknowledged it .*may or may not be kept; asking again is safe/;
  await cli.refused(1, unconfirmed, 'pause', '--reason', 'maintenance');
});
