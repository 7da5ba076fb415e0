import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { verifyApprovals } from '../../../src/control/approvals/approvable-payout.js';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { takeLease } from '../../ledger/contract/ledger-rig.js';
import { until } from '../../support/until.js';
import { ADDRESS, openApprovalRig, type ApprovalRig } from '../support/approval-rig.js';
import { textWith, type CliRig } from '../support/cli-rig.js';

/** `payouts approve`, `reject` and `approvals`; the rules of approvals are in test/control. */

let rig: ApprovalRig;
let cli: CliRig;
beforeEach(async () => {
  rig = await openApprovalRig();
  cli = rig.account;
});
afterEach(async () => rig.close());

/** Whose approvals and rejections a worker counts, and what it says of the others. */
async function counted(payoutId: string) {
  const keyring = readKeyringFile(rig.env['PAYOUT_KEYS_FILE'] ?? '').for(TEST_AUDIENCE);
  const payout = await cli.ledger.require(payoutId);
  const judged = verifyApprovals(payout, { platformId: cli.platformId, keyring, now: Date.now() });
  return judged.map(({ approval, person, message = '' }) => `${approval.decision} ${person ?? message}`);
}

const approve = (payoutId: string, key: keyof ApprovalRig['files'], ...args: string[]) => [
  ...['approve', payoutId, '--key', key === 'bob' ? `ssh:${rig.files[key]}` : rig.files[key], '--yes', ...args],
];

it('signs what two people verified, one through ssh-keygen', async () => {
  await rig.hold('p', { requestedBy: 'Rita', reference: 'INV-9' });
  const ann = await cli.run(...approve('p', 'ann', '--reason', 'ticket 9'));
  expect(ann).toMatchObject({
    ...{ code: 0, stdout: textWith(/^Payout p is approved by key ann \(ann\) until \d{4}-.* UTC\.\n$/) },
  });
  const { code, stderr } = await cli.run(...approve('p', 'bob'));
  expect(code).toBe(0);
  for (const line of [
    ...[/^p\n/, /amount +12\.5\n/, /currency +payment id 7\n/, /reference +INV-9\n/, /requested by +Rita\n/],
    ...[/address +TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf\n/, /signed by +key shop \(sam\), until /],
    ...[/why, says Redis +four-eyes: it is 12\.5, more than 5\n/, /needs, says Redis +2 more people of finance\n/],
    /said before +approved by key ann \(ann\) at /,
  ]) {
    expect(stderr).toMatch(line);
  }
  expect(await counted('p')).toEqual(['approve ann', 'approve bob']);
  expect(await cli.ok('activity')).toMatch(/ann.*p approved with a signature.*ticket 9/);
  // After the key was stolen: what it approved, and what became of that.
  expect(await cli.ok('activity', '--key', 'ann', '--all')).toMatch(
    /^\S+ \S+ UTC +ann +p approved with a signature +now (held|queued) +ticket 9\n$/,
  );
  expect(await cli.lines('activity', '--key', 'ann')).toMatchObject([{ what: 'approved', payoutId: 'p', by: 'ann' }]);
  expect(await cli.ok('activity', '--key', 'an', '--all')).toBe('');
  expect(await cli.ok('events')).toMatch(/ p {2}approval: approve {2}by ann: ticket 9\n/);
});

it('refuses who signed it, an operator, what someone altered', async () => {
  await rig.hold('p');
  for (const [code, message, args] of [
    [5, /^payouts: Payout p was signed by sam, who cannot approve it/m, approve('p', 'sam')],
    [5, /"olga" has the role operator\. An approval is signed by a key with the role approver/, approve('p', 'olga')],
    [5, /give --key FILE/, ['approve', 'p', '--yes']],
    [3, /nobody/, approve('nobody', 'ann')],
    [2, /--expires-in/, approve('p', 'ann', '--expires-in', '8d')],
  ] as [number, RegExp, string[]][])
    await cli.refused(code, message, ...args);
  expect(await cli.run('approve', 'p', '--key', rig.files.ann)).toMatchObject({
    ...{ code: 2, stderr: textWith(/^payouts: --yes: is required/) },
  });
  await cli.alter('p', { addressTo: 'TEvil' });
  const altered = /Payout p is not verified\. The signature of key "shop" is not over/;
  for (const args of [approve('p', 'ann'), ['approve', 'p', '--offline', '--key-name', 'ann']]) {
    await cli.refused(5, altered, ...args);
  }
  expect((await cli.redis.hkeys(cli.keys.payout('p'))).filter((name) => name.startsWith('approval:'))).toEqual([]);
  delete rig.env['PAYOUT_KEYS_FILE'];
  await cli.refused(2, /^payouts: PAYOUT_KEYS_FILE: is required/, ...approve('p', 'ann'));
});

it('takes those of a batch that wait, adds them up', async () => {
  await rig.hold('p', { batch: 'May', amount: '0.1' });
  await rig.hold('q', { batch: 'May', amount: '0.2', requestedBy: 'Ann' });
  await rig.hold('r', { batch: 'May', amount: '0.2' });
  await rig.hold('evil', { batch: 'May' });
  await cli.alter('evil', { amount: '999' });
  await rig.enqueue('s', { batch: 'May' });
  await rig.hold('t');
  const approveBatch = (batch: string) => ['approve', '--batch', batch, '--key', rig.files.ann, '--yes'];
  const first = await cli.run(...approveBatch('May'));
  expect(first.code).toBe(5);
  for (const line of [
    ...[/Payout q was requested by ann, who cannot approve it/, /Payout evil is not verified/],
    ...[/2 payouts, verified with the keyring\n.*7 +2 +0\.3\n/s, /2 payouts left as they are, for the reasons above/],
  ]) {
    expect(first.stderr).toMatch(line);
  }
  const all = await Promise.all(['p', 'q', 'r', 's', 't'].map(counted));
  expect(all).toEqual([['approve ann'], [], ['approve ann'], [], []]);
  await cli.alter('evil', { amount: '12.5' });
  // The acts say what they were chosen by.
  expect(await cli.ok('activity')).toMatch(/^\S+ \S+ UTC +ann +2 payouts \(batch May\) approved with a signature *\n$/);
  const second = await cli.run(...approveBatch('May'));
  expect(second.stderr).toMatch(/2 payouts left as they are: approved by ann before/);
  expect(second.stdout).toMatch(/^Payout evil is approved/);
  await cli.refused(3, 'June', ...approveBatch('June'));
});

describe('payouts approve at a terminal', () => {
  beforeEach(async () => rig.hold('p'));
  const ask = ['approve', 'p', '--key'];
  const approvals = async () => (await cli.ledger.require('p')).approvals;

  it('says who signs for how long, and signs after a yes alone, also offline', async () => {
    for (const args of [[], ['--offline']]) {
      const { code, stdout } = await cli.answered('n', ...ask, rig.files.ann, ...args);
      expect([code, stdout, await approvals()]).toEqual([1, '', undefined]);
    }
    const { code, asked } = await cli.answered('y', ...ask, rig.files.ann, '--expires-in', '90m');
    expect(code).toBe(0);
    expect(asked).toMatch(/Approve 1 payout of account \d+ with key ann \(ann\), until .* UTC\? \[y\/N\] /);
    const [approval] = (await approvals()) ?? [];
    expect(Date.parse(approval?.expiresAt ?? '') - Date.parse(approval?.at ?? '')).toBe(90 * 60_000);
  });

  it('signs what was shown, not what someone puts in its place meanwhile', async () => {
    const asking = cli.ask(...ask, rig.files.ann);
    await asking.untilAsked();
    await cli.alter('p', { addressTo: 'TEvil' });
    asking.answer('y');
    await asking.result;
    expect(await cli.ok('get', 'p')).toMatch(/approved by key ann: does not count, the payout itself is not/);
    await cli.alter('p', { addressTo: ADDRESS });
    expect(await cli.ok('get', 'p')).toMatch(/approved by key ann \(ann\) at/);
  });
});

it('a rejection holds whatever the state before a send, and only its person takes it back', async () => {
  for (const payoutId of ['queued', 'unsigned', 'expired']) await rig.enqueue(payoutId);
  await cli.redis.hdel(cli.keys.payout('unsigned'), 'key');
  await cli.alter('expired', { exp: '2020-01-02T00:00:00.000Z' });
  await rig.hold('held');
  const all = ['queued', 'unsigned', 'expired', 'held'];
  const because = ['--reason', 'wrong address'];
  const rejected = await cli.run('reject', ...all, '--key', rig.files.ann, ...because, '--yes');
  expect(rejected).toMatchObject({
    code: 0,
    stdout: textWith(/^Payout held is rejected by key ann .*, until this person/m),
  });
  for (const payoutId of all) {
    const held = { kind: 'rejection', message: textWith(/^ann rejected it: wrong address\. It is not sent until/) };
    expect(await cli.ledger.require(payoutId)).toMatchObject({ state: 'held', held });
  }
  expect(await cli.ok('get', 'queued')).toMatch(/rejected by key ann \(ann\) at .*: wrong address/);
  const unreject = (key: string) => ['unreject', 'queued', '--key', key, '--reason', 'it is right'];
  await cli.refused(
    4,
    /^payouts: Payout queued has no rejection by rita, who alone takes one back/,
    ...unreject(rig.files.rita),
    '--yes',
  );
  await cli.refused(2, /--yes: is required/, ...unreject(rig.files.ann));
  await cli.refused(2, /--reason/, 'unreject', 'queued', '--key', rig.files.ann, '--yes');
  expect(await cli.run(...unreject(rig.files.ann), '--yes')).toMatchObject({ code: 0 });
  expect(await cli.ledger.require('queued')).toMatchObject({ state: 'queued' });
  expect(await cli.ok('get', 'queued')).toMatch(/rejected by key ann: does not count, the person took it back/);
  expect((await cli.lines('activity')).slice(0, 2).map(({ what }) => what)).toEqual(['released', 'unrejected']);
  const signed = await cli.run('reject', 'queued', '--offline', '--key', rig.files.rita, ...because);
  const stored = ['reject', '--file', await cli.file('rejection.jsonl', signed.stdout.trimEnd())];
  await cli.refused(2, /use `payouts reject`/, 'approve', ...stored.slice(1));
  expect(await cli.ok(...stored)).toMatch(
    /^1 rejection of 1 stored\.\nNo worker is known to have it on its disk\. Keep these/,
  );
  expect(await cli.ledger.require('queued')).toMatchObject({ state: 'held', held: { kind: 'rejection' } });
});

it('payouts reject prints the rejections to keep until a worker has them, and stores them again', async () => {
  await rig.hold('p');
  await rig.hold('q');
  const older = await cli.redis.dumpBuffer(cli.keys.payout('p'));
  const reject = ['reject', 'p', 'q', '--key', rig.files.ann, '--reason', 'wrong address'];
  const [, , note = '', ...lines] = (await cli.run(...reject)).stdout.trimEnd().split('\n');
  expect(note).toMatch(/^No worker is known to have it on its disk\. Keep these lines: .*`payouts reject --file FILE`/);
  await cli.redis.restore(cli.keys.payout('p'), 0, older, 'REPLACE');
  expect(await counted('p')).toEqual([]);
  expect(await cli.run('reject', '--file', await cli.file('kept.jsonl', ...lines))).toMatchObject({ code: 0 });
  expect([await counted('p'), await counted('q')]).toEqual([['reject ann'], ['reject ann']]);
});

it('payouts reject says which worker has it on its disk', async () => {
  await rig.hold('p');
  const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
  await takeLease(sender, 'one');
  const rejecting = cli.run('reject', 'p', '--key', rig.files.ann, '--reason', 'wrong address');
  await until('it is rejected', async () => (await sender.readUnkept(1)).entries.length === 1);
  const { entries, decided } = await sender.readUnkept(1);
  expect(decided).toMatchObject([{ payoutId: 'p', approvals: [{ decision: 'reject', by: 'ann' }] }]);
  await sender.noteKept((await sender.readSender()).acts, entries);
  expect((await rejecting).stdout).toMatch(/\nWorker one has it on its disk: .*\n$/);
});

it('payouts reject is open to who requested the payout', async () => {
  await rig.hold('p', { requestedBy: 'Rita' });
  const reject = ['reject', 'p', '--key', rig.files.rita, '--reason', 'wrong address'];
  expect(await cli.run(...reject)).toMatchObject({ code: 0 });
  await cli.refused(5, /^payouts: Payout p was requested by rita/m, ...approve('p', 'rita'));
  expect(await cli.run(...approve('p', 'ann'))).toMatchObject({ code: 0 });
  expect(await cli.run(...reject.with(3, rig.files.ann))).toMatchObject({ code: 0 });
  const refused = await cli.run(...approve('p', 'ann'));
  expect(refused).toMatchObject({ code: 4, stderr: textWith('The key ann rejected payout p before') });
  expect(await counted('p')).toEqual(['reject rita', 'reject ann']);
  await cli.ok('cancel', 'p', '--reason', 'over');
  await cli.refused(4, 'Payout p is cancelled: only', ...approve('p', 'bob'));
});

const store = async (text: string) => [...['approve', '--file', await cli.file('signed.jsonl', text.trimEnd())]];

it('approvals that are signed elsewhere are printed, signed by OpenSSH, and stored', async () => {
  await rig.hold('p');
  const printed = await cli.run('approve', 'p', '--offline', '--key-name', 'bob', '--reason', 'ticket 9');
  expect(printed.code).toBe(0);
  const line = JSON.parse(printed.stdout) as { readonly text: string };
  // What is signed names the payment itself: nothing beside it has to be believed.
  expect(line).toMatchObject({ by: 'bob', addressTo: ADDRESS, amount: '12.5' });
  expect(line.text).toMatch(
    new RegExp(`\npaymentId=7\namount=12\\.5\nsymbol=\naddressTo=${ADDRESS}\nintent=[0-9a-f]{64}\n`),
  );
  const swapped = { ...line, addressTo: 'TEvil', text: line.text.replace(ADDRESS, 'TEvil') };
  const evil = spawnSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', rig.files.bob, '-n', 'approval.payout-queue'], {
    input: swapped.text,
  });
  const told = await cli.run(...(await store(JSON.stringify({ ...swapped, signature: String(evil.stdout) }))));
  expect(told).toMatchObject({ code: 5, stderr: textWith('its addressTo is another than that of the payout') });
  const args = ['-q', '-Y', 'sign', '-f', rig.files.bob, '-n', 'approval.payout-queue'];
  const signature = String(spawnSync('ssh-keygen', args, { input: line.text }).stdout);
  expect(await counted('p')).toEqual([]);
  const stored = await cli.ok(...(await store(JSON.stringify({ ...line, signature }))));
  expect(stored).toBe('1 approval of 1 stored.\n');
  expect(await counted('p')).toEqual(['approve bob']);
  expect(await cli.ok('events')).toMatch(/by bob: ticket 9/);
  expect(await cli.lines('activity')).toMatchObject([{ what: 'approved', by: 'bob', source: 'file signed.jsonl' }]);
});

it('approvals that are signed elsewhere are signed with a key without a write to Redis', async () => {
  for (const payoutId of ['p', 'q']) await rig.hold(payoutId);
  const { stdout: signed } = await cli.run('approve', 'p', 'q', '--offline', '--key', rig.files.ann, '--yes');
  const wrong = await store(`${signed}{"payoutId":"p"}`);
  await cli.refused(2, /^line 3: audience: is missing\nline 3: intent: is missing\n/, ...wrong);
  for (const args of [
    [...wrong, '--key', rig.files.ann],
    ['approve', 'p', '--offline'],
  ])
    await cli.refused(2, '', ...args);
  expect([await counted('p'), await counted('q')]).toEqual([[], []]);
  const stored = await cli.run(...(await store(signed.replace(/"at":"[^"]*"/, '"at":"2030-01-01T00:00:00.000Z"'))));
  expect(stored).toMatchObject({ code: 5, stdout: '1 approval of 2 stored.\n' });
  expect(stored.stderr).toMatch(/The approval of payout p by key ann does not count: the signature of key "ann"/);
  expect([await counted('p'), await counted('q')]).toEqual([[], ['approve ann']]);
});

it('payouts approvals lists what waits, with who is missing', async () => {
  expect(await cli.ok('approvals')).toBe('No payout waits for approval.\n');
  await rig.hold('p', { requestedBy: 'Rita' });
  await rig.enqueue('r');
  await cli.run(...approve('p', 'ann'));
  expect(await cli.ok('approvals')).toMatch(
    /^p +12\.5 \(payment_id 7\) +TXYZ\w{30} +four-eyes +2 more people of finance \(so far: approve ann\) +\d+ s$/m,
  );
  expect(await cli.json('approvals')).toMatchObject({
    ...{ payoutId: 'p', amount: '12.5', addressTo: ADDRESS, rule: 'four-eyes', needs: { by: 'finance', persons: 2 } },
    ...{ requestedBy: 'Rita', signedBy: 'shop', waitedMs: expect.any(Number) },
    ...{ approvals: [{ by: 'ann', decision: 'approve', verified: true, person: 'ann' }] },
  });
  delete rig.env['PAYOUT_KEYS_FILE'];
  expect(await cli.ok('get', 'p')).toMatch(/approved by key ann: not verified, for want of PAYOUT_KEYS_FILE\n/);
});
