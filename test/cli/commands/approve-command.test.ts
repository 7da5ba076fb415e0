import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { verifyApprovals } from '../../../src/control/approvals/approvable-payout.js';
import { openApprovalRig, type ApprovalRig } from '../support/approval-rig.js';
import { TEST_TRUST } from '../../control/support/keys.js';

let rig: ApprovalRig;
beforeEach(async () => {
  rig = await openApprovalRig();
});
afterEach(async () => rig.close());

/** Whose approvals and rejections a worker counts, and what it says of the others. */
async function counted(payoutId: string): Promise<string[]> {
  const { platformId } = rig.account.ledger.connection;
  const keyring = readKeyringFile(rig.env['PAYOUT_KEYS_FILE'] ?? '').for(TEST_TRUST);
  const payout = await rig.account.ledger.require(payoutId);
  const judged = verifyApprovals(payout, { platformId, keyring, now: Date.now() });
  return judged.map(({ approval, person, message = '' }) => `${approval.decision} ${person ?? message}`);
}

const approve = async (payoutId: string, key: keyof ApprovalRig['files'], ...args: string[]) =>
  rig.run('approve', payoutId, key === 'bob' ? '--ssh-key' : '--key', rig.files[key], '--yes', ...args);
const alter = async (payoutId: string, fields: Record<string, string>): Promise<unknown> =>
  rig.account.ledger.connection.redis.hset(rig.account.ledger.connection.keys.payout(payoutId), fields);

describe('payouts approve', () => {
  it('signs what two people verified, one through ssh-keygen', async () => {
    await rig.hold('p', { requestedBy: 'Rita' });
    const ann = await rig.runProcess('approve', 'p', '--key', rig.files.ann, '--yes', '--reason', 'ticket 9');
    expect(ann).toMatchObject({ code: 0 });
    expect(ann.stdout).toMatch(/^Payout p is approved by key ann \(ann\) until \d{4}-.* UTC\.\n$/);
    expect(await approve('p', 'bob')).toMatchObject({ code: 0 });
    expect(await counted('p')).toEqual(['approve ann', 'approve bob']);
    const { connection } = rig.account.ledger;
    expect(await connection.redis.smembers(connection.keys.recheck)).toEqual(['p']);
    expect((await rig.run('activity')).stdout).toMatch(/ann.*p approved with a signature.*ticket 9/);
    expect((await rig.run('events')).stdout).toMatch(/ p {2}approval: approve {2}by ann: ticket 9\n/);
  });

  it('shows all that was signed, nothing shortened, and who said what before', async () => {
    await rig.hold('p', { requestedBy: 'Rita', reference: 'INV-9' });
    await approve('p', 'ann');
    const { stderr } = await approve('p', 'bob');
    for (const line of [
      /^p\n/,
      /amount +12\.5\n/,
      /currency +payment id 7\n/,
      /address +TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf\n/,
      /reference +INV-9\n/,
      /requested by +Rita\n/,
      /signed by +key shop \(sam\), until /,
      /why, says Redis +four-eyes: it is 12\.5, more than 5\n/,
      /needs, says Redis +2 more people of finance\n/,
      /said before +approved by key ann \(ann\) at /,
    ]) {
      expect(stderr).toMatch(line);
    }
  });

  it('never shows what rewrites the lines above it', async () => {
    await rig.hold('p');
    const message = '\u001b[5A\u001b[2Kaddress  TEvil\u202e';
    await alter('p', {
      held: JSON.stringify({ kind: 'policy', reason: 'approve', message, needs: { by: '\u001b[H', persons: 1 } }),
    });
    const { connection } = rig.account.ledger;
    const currencies = [{ paymentId: 7, name: 'BTC\u001b[1D', usdRate: undefined }];
    await writeGatewayFacts(connection, { currencies, currenciesAt: 0 });
    for (const result of [await approve('p', 'ann'), await rig.run('approvals'), await rig.run('get', 'p')]) {
      expect(`${result.stdout}${result.stderr}`).not.toMatch(/[\u001b\u202e]/);
    }
    const { stderr } = await approve('p', 'ann');
    expect(stderr).toContain('\\u{1b}[5A');
    expect(stderr).toContain('currency           payment id 7 (BTC\\u{1b}[1D, says Redis)\n');
  });

  it.each<[string, 'rita' | 'sam' | 'olga', RegExp]>([
    ['who requested it', 'rita', /^payouts: Payout p was requested by rita, who cannot approve it/m],
    ['who signed it, with another key', 'sam', /^payouts: Payout p was signed by sam, who cannot approve it/m],
    ['an operator', 'olga', /"olga" has the role operator\. An approval is signed by a key with the role approver/],
  ])('refuses %s', async (_, key, message) => {
    await rig.hold('p', { requestedBy: 'Rita' });
    const refused = await approve('p', key);
    expect(refused).toMatchObject({ code: 5, stdout: '' });
    expect(refused.stderr).toMatch(message);
    expect(await counted('p')).toEqual([]);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['another address', { addressTo: 'TEvil' }, /Payout p is not verified\. The signature of key "shop" is not over/],
    ['another amount', { amount: '125' }, /The signature of key "shop" is not over this payout/],
    ['another person who requested it', { requestedBy: 'Zoe' }, /The signature of key "shop" is not over this payout/],
    ['a key that nobody knows', { key: 'evil' }, /The key "evil" is not in the worker's keyring/],
    ['a history that cannot be read', { n: '9' }, /The record of payout p in Redis cannot be read/],
  ])('refuses a payout that someone gave %s', async (_, fields, message) => {
    await rig.hold('p', { requestedBy: 'Rita' });
    await alter('p', fields);
    for (const result of [await approve('p', 'ann'), await rig.run('approve', 'p', '--offline', '--key-name', 'ann')]) {
      expect(result).toMatchObject({ code: 5, stdout: '', stderr: expect.stringMatching(message) });
    }
    const { connection } = rig.account.ledger;
    expect(await connection.redis.hkeys(connection.keys.payout('p'))).not.toContain('approval:ann');
  });

  it('needs a keyring, a key, a payout that is there, and someone to ask', async () => {
    await rig.hold('p');
    expect(await rig.run('approve', 'p', '--yes')).toMatchObject({
      ...{ code: 5, stderr: expect.stringContaining('give --key FILE') },
    });
    expect(await rig.run('approve', 'p', '--key', rig.files.ann)).toMatchObject({
      ...{ code: 2, stderr: expect.stringMatching(/^payouts: --yes: is required/) },
    });
    expect(await approve('nobody', 'ann')).toMatchObject({ code: 3 });
    expect(await approve('p', 'ann', '--expires-in', '8d')).toMatchObject({ code: 2 });
    expect(await approve('p', 'ann', '--reason', 'WHY')).toMatchObject({ code: 2 });
    expect(await rig.run('approve', '--key', rig.files.ann, '--yes')).toMatchObject({ code: 2 });
    delete rig.env['PAYOUT_KEYS_FILE'];
    expect(await approve('p', 'ann')).toMatchObject({
      ...{ code: 2, stderr: expect.stringMatching(/^payouts: PAYOUT_KEYS_FILE: is required/) },
    });
  });

  it('refuses what is neither queued nor held', async () => {
    await rig.enqueue('p');
    expect(await approve('p', 'ann')).toMatchObject({ code: 0 });
    await rig.run('cancel', 'p', '--reason', 'over');
    const refused = await approve('p', 'bob');
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('Payout p is cancelled: only') });
  });

  it('takes those of a batch that wait, adds them up, and leaves the others and its own', async () => {
    await rig.hold('p', { batch: 'May', amount: '0.1' });
    await rig.hold('q', { batch: 'May', amount: '0.2', requestedBy: 'Ann' });
    await rig.hold('r', { batch: 'May', amount: '0.2' });
    await rig.hold('evil', { batch: 'May' });
    await alter('evil', { amount: '999' });
    await rig.enqueue('s', { batch: 'May' });
    await rig.hold('t');
    const first = await rig.run('approve', '--batch', 'May', '--key', rig.files.ann, '--yes');
    expect(first.code).toBe(5);
    expect(first.stderr).toMatch(/Payout q was requested by ann, who cannot approve it/);
    expect(first.stderr).toMatch(/Payout evil is not verified/);
    expect(first.stderr).toMatch(/2 payouts, verified with the keyring\n.*7 +2 +0\.3\n/s);
    expect(first.stderr).toMatch(/2 payouts left as they are, for the reasons above/);
    expect(await Promise.all(['p', 'q', 'r', 's', 't'].map(counted))).toEqual([
      ...[['approve ann'], [], ['approve ann'], [], []],
    ]);
    await alter('evil', { amount: '12.5' });
    const second = await rig.run('approve', '--batch', 'May', '--key', rig.files.ann, '--yes');
    expect(second.stderr).toMatch(/2 payouts left as they are: approved by ann before/);
    expect(second.stdout).toMatch(/^Payout evil is approved/);
    expect(await rig.run('approve', '--batch', 'June', '--key', rig.files.ann, '--yes')).toMatchObject({ code: 3 });
  });
});

describe('payouts reject', () => {
  it('is not overwritten by an approval, and open to who requested the payout', async () => {
    await rig.hold('p', { requestedBy: 'Rita' });
    const why = ['--reason', 'wrong address'];
    expect(await rig.run('reject', 'p', '--key', rig.files.rita, ...why)).toMatchObject({ code: 0 });
    expect(await approve('p', 'ann')).toMatchObject({ code: 0 });
    expect(await rig.run('reject', 'p', '--key', rig.files.ann, ...why)).toMatchObject({ code: 0 });
    const refused = await approve('p', 'ann');
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('The key ann rejected payout p before') });
    expect(await counted('p')).toEqual(['reject rita', 'reject ann']);
    expect((await rig.run('activity')).stdout).toMatch(/p rejected with a signature.*wrong address/);
  });
});

describe('approvals that are signed elsewhere', () => {
  const file = (): string => join(rig.keys.dir, 'signed.jsonl');

  it('are printed, signed by OpenSSH, and stored', async () => {
    await rig.hold('p');
    const printed = await rig.run('approve', 'p', '--offline', '--key-name', 'bob', '--reason', 'ticket 9');
    expect(printed.code).toBe(0);
    const line = JSON.parse(printed.stdout) as { readonly text: string };
    expect(line).toMatchObject({
      by: 'bob',
      payout: { addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', amount: '12.5' },
    });
    expect(line.text).toMatch(
      /^payout-queue approval v2\naudience=test\nplatformId=\d+\npayoutId=p\nintent=[0-9a-f]{64}\n/,
    );
    const args = ['-q', '-Y', 'sign', '-f', rig.files.bob, '-n', 'approval.payout-queue'];
    const signature = String(spawnSync('ssh-keygen', args, { input: line.text }).stdout);
    await writeFile(file(), `${JSON.stringify({ ...line, signature })}\n`);
    expect(await counted('p')).toEqual([]);
    const stored = await rig.run('approve', '--file', file());
    expect(stored).toMatchObject({ code: 0, stdout: '1 approval of 1 stored.\n' });
    expect(await counted('p')).toEqual(['approve bob']);
    expect((await rig.run('events')).stdout).toMatch(/by bob: ticket 9/);
  });

  it('are signed with a key without a write to Redis, and those that would not count are left out', async () => {
    await rig.hold('p');
    await rig.hold('q');
    const signed = await rig.run('approve', 'p', 'q', '--offline', '--key', rig.files.ann, '--yes');
    expect(signed.code).toBe(0);
    expect([await counted('p'), await counted('q')]).toEqual([[], []]);
    await writeFile(file(), signed.stdout.replace(/"at":"[^"]*"/, '"at":"2030-01-01T00:00:00.000Z"'));
    const stored = await rig.run('approve', '--file', file());
    expect(stored).toMatchObject({ code: 5, stdout: '1 approval of 2 stored.\n' });
    expect(stored.stderr).toMatch(/The approval of payout p by key ann does not count: the signature of key "ann"/);
    expect([await counted('p'), await counted('q')]).toEqual([[], ['approve ann']]);
  });

  it('are refused as a whole where a line is none', async () => {
    await rig.hold('p');
    const signed = await rig.run('approve', 'p', '--offline', '--key', rig.files.ann, '--yes');
    await writeFile(file(), `${signed.stdout}{"payoutId":"p"}\n`);
    const refused = await rig.run('approve', '--file', file());
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(/^line 2: intent: is missing\n/);
    expect(await counted('p')).toEqual([]);
    expect(await rig.run('approve', '--file', file(), '--key', rig.files.ann)).toMatchObject({ code: 2 });
    expect(await rig.run('approve', 'p', '--offline')).toMatchObject({ code: 2 });
  });
});

describe('payouts approvals', () => {
  it('lists what waits, with who is missing', async () => {
    expect((await rig.run('approvals')).stdout).toBe('No payout waits for approval.\n');
    await rig.hold('p', { requestedBy: 'Rita' });
    await rig.hold('q');
    await rig.enqueue('r');
    await approve('p', 'ann');
    const { stdout } = await rig.run('approvals');
    const address = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
    expect(stdout).toMatch(
      new RegExp(
        `^p +12\\.5 \\(payment_id 7\\) +${address} +four-eyes +2 more people of finance \\(so far: approve ann\\) +\\d+ s$`,
        'm',
      ),
    );
    expect(stdout).not.toMatch(/^r /m);
    const [p, q] = (await rig.run('approvals', '--json')).stdout.trim().split('\n');
    expect(JSON.parse(p ?? '')).toMatchObject({
      ...{ payoutId: 'p', amount: '12.5', addressTo: address, rule: 'four-eyes', needs: { by: 'finance', persons: 2 } },
      ...{ requestedBy: 'Rita', signedBy: 'shop', waitedMs: expect.any(Number) },
      approvals: [{ by: 'ann', decision: 'approve', verified: true, person: 'ann' }],
    });
    expect(JSON.parse(q ?? '')).not.toHaveProperty('approvals');
  });
});

describe('payouts get', () => {
  it('shows approvals, and where there is a keyring whether each counts', async () => {
    await rig.hold('p');
    await approve('p', 'ann');
    const { connection } = rig.account.ledger;
    const [ann] = (await rig.account.ledger.require('p')).approvals ?? [];
    await connection.redis.hset(connection.keys.payout('p'), 'approval:sam', JSON.stringify({ ...ann, by: 'sam' }));
    const shown = await rig.run('get', 'p');
    expect(shown.stdout).toMatch(/approval +approved by key ann \(ann\) at .* UTC\n/);
    expect(shown.stdout).toMatch(/approval +approved by key sam: does not count, the signature of key "sam" is not/);
    const json = JSON.parse((await rig.run('get', 'p', '--json')).stdout) as { approvals: object[] };
    expect(json.approvals).toEqual([
      { by: 'ann', decision: 'approve', at: ann?.at, expiresAt: ann?.expiresAt, verified: true, person: 'ann' },
      expect.objectContaining({ by: 'sam', verified: false, message: expect.stringContaining('is not over it') }),
    ]);
    expect(JSON.stringify(json)).not.toContain(ann?.signature);
    delete rig.env['PAYOUT_KEYS_FILE'];
    const unknown = JSON.parse((await rig.run('get', 'p', '--json')).stdout) as { approvals: object[] };
    expect(unknown.approvals[0]).toEqual({ by: 'ann', decision: 'approve', at: ann?.at, expiresAt: ann?.expiresAt });
    expect((await rig.run('get', 'p')).stdout).toMatch(
      /approval +approved by key ann: not verified, for want of PAYOUT_KEYS_FILE\n/,
    );
  });
});
