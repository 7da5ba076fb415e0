import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { verifyAct } from '../../../src/control/approvals/act.js';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { readSenderView } from '../../../src/ledger/sender-view.js';
import { openTestKeys, type TestKeys } from '../../control/support/key-files.js';
import { TEST_TRUST } from '../../control/support/keys.js';
import { startSshAgent } from '../../control/support/ssh-agent.js';
import { sendOf } from '../../operator/support/older-ledger.js';
import { intentHashOf, requireAct, sendSigned } from '../../operator/support/signing-rig.js';
import { textWith, useCli } from '../support/cli-rig.js';

/** What an operator's key signs, and which commands need one; the rules are in test/operator/signed-decisions.test.ts. */

const cli = useCli();
const WHY = ['--reason', 'ticket 812', '--by', 'ann'];

let keys: TestKeys;
let keyring: string;
let keyFile: string;
let sshFile: string;
beforeEach(async () => {
  keys = await openTestKeys();
  const [ann, shop, ssh] = [await keys.makeKey('ann'), await keys.makeKey('shop'), await keys.makeSshKey('id_ann')];
  [keyFile, sshFile] = [ann.file, ssh.file];
  keyring = await keys.writeKeyring(
    { name: 'ann', role: 'operator', person: 'Ann', public: ann.public },
    { name: 'ann-ssh', role: 'operator', person: 'Ann', public: ssh.public },
    { name: 'shop', role: 'producer', person: 'Shop', public: shop.public },
  );
  Object.assign(cli.env, { PAYOUT_KEYS_FILE: keyring, PATH: process.env['PATH'] ?? '' });
});
afterEach(async () => keys.close());

/** Who signed an act, as a worker finds out; why it does not count otherwise. */
function signerOf(text: string | undefined, wanted: Parameters<typeof verifyAct>[2]): string {
  const trusted = readKeyringFile(keyring).for(TEST_TRUST);
  const act = requireAct(text);
  const verdict = verifyAct(cli.platformId, act, wanted, trusted, Date.now());
  return verdict.kind === 'verified' ? `${act.by} of ${verdict.person}` : verdict.message;
}
const signersOf = async (...payoutIds: string[]): Promise<string[]> =>
  Promise.all(
    payoutIds.map(async (payoutId) => {
      const payout = await cli.ledger.require(payoutId);
      const { attempt } = payout;
      return signerOf(payout.act, { act: 'resend', payoutId, intent: intentHashOf(cli.platformId, payout), attempt });
    }),
  );
const aboutAccount = (act: 'resume' | 'adopt') => ({ act, payoutId: '', intent: '', attempt: undefined });

describe('with PAYOUT_KEYS_FILE', () => {
  it.each([
    ['retry', 'p'],
    ['retry', '--state', 'rejected', '--yes'],
    ['resolve', 'p', '--not-sent'],
    ['resolve', '--file', 'f.csv', '--not-sent', '--expect-count', '1'],
    ['resume'],
    ['adopt-ledger', '--yes'],
  ])('%s needs a key', async (...args) => {
    await sendSigned(cli.ledger, args[0] === 'resolve' ? 'unknown' : 'rejected', 'p');
    const needed = /^payouts: PAYOUT_KEYS_FILE is set, .*--key FILE .*--ssh-key FILE\.pub.*changed\n$/;
    await cli.refused(5, needed, ...args, ...WHY);
    expect(await cli.states('p')).not.toEqual(['queued']);
  });

  it('what sends nothing again needs none, and takes one', async () => {
    await sendSigned(cli.ledger, 'unknown', 'p', 'q', 'r');
    await cli.ok('resolve', 'p', '--write-off', ...WHY);
    const sent = ['--sent', '--force'];
    expect(await cli.ok('resolve', 'q', ...sent, '--txhash', 'h-1', '--key', keyFile, ...WHY)).toMatch(
      /^Payout q is in_progress/,
    );
    const file = await cli.file('paid.csv', 'payout_id,txhash', 'r,h-2');
    const many = await cli.run('resolve', '--file', file, ...sent, '--yes', '--key', keyFile, ...WHY);
    expect(many).toMatchObject({ code: 0, stdout: textWith(/1 payout in progress/) });
    await cli.ok('pause', ...WHY);
    const unpaid = await cli.file('unpaid.csv', 'payout_id,txhash', 'r,');
    for (const args of [
      ['resolve', '--file', unpaid, '--not-sent'],
      ['retry', '--state', 'rejected'],
    ]) {
      expect(await cli.run(...args, '--dry-run', ...WHY)).toMatchObject({ code: 0 });
    }
  });

  it('retry signs with a key file, and says so', async () => {
    await sendSigned(cli.ledger, 'rejected', 'p');
    const stdout = await cli.ok('retry', 'p', '--key', keyFile, ...WHY);
    expect(stdout).toBe('Payout p is queued again, signed with key ann (ann).\n');
    expect(await signersOf('p')).toEqual(['ann of ann']);
  });

  it('resolve signs through ssh-agent, one payout or many of a file', async () => {
    await sendSigned(cli.ledger, 'unknown', 'p', 'q', 'r');
    const agent = await startSshAgent(keys.dir);
    const privateFile = sshFile.replace(/\.pub$/, '');
    agent.add(privateFile);
    // The agent alone has it.
    await rm(privateFile);
    cli.env['SSH_AUTH_SOCK'] = agent.socket;
    try {
      const signed = ['--not-sent', '--ssh-key', sshFile, ...WHY];
      expect(await cli.ok('resolve', 'p', ...signed)).toContain('signed with key ann-ssh (ann).');
      const file = await cli.file('payouts.csv', 'payout_id', 'q', 'r');
      const many = await cli.json('resolve', '--file', file, '--expect-count', '2', ...signed);
      expect(many).toMatchObject({ payouts: 2, changed: 2, refused: 0 });
    } finally {
      await agent.stop();
    }
    expect(await signersOf('p', 'q', 'r')).toEqual(Array(3).fill('ann-ssh of ann'));
  });

  it('retry of many signs each, and leaves those that no producer signed', async () => {
    await sendSigned(cli.ledger, 'rejected', 'p', 'q');
    await cli.make('rejected', 'bare');
    await cli.alter('bare', { attempt: 1 });
    const result = await cli.run('retry', '--state', 'rejected', '--yes', '--key', keyFile, ...WHY);
    expect(result).toMatchObject({ code: 4, stdout: textWith('2 payouts queued again.') });
    expect(result.stderr).toMatch(/Payout bare carries no signature of a producer/);
    expect(await signersOf('p', 'q')).toEqual(['ann of ann', 'ann of ann']);
  });

  it('resume signs, also where the account was not paused, and so does adopt-ledger', async () => {
    await cli.ok('pause', ...WHY);
    const { platformId } = cli;
    const first = await cli.ok('resume', '--key', keyFile, ...WHY);
    expect(first).toBe(`Account ${platformId} sends again, signed with key ann (ann).\n`);
    expect(await cli.ok('resume', '--key', keyFile, '--reason', 'again')).toMatch(
      /was not paused; what key ann \(ann\) signed is kept for workers/,
    );
    const dir = join(keys.dir, 'journal');
    await mkdir(dir);
    const journal = await FileSendJournal.open({ dir, platformId });
    await journal.bind({ ledgerId: 'former', epoch: 1, sends: 0, token: '' });
    await journal.append(sendOf('p-1', 1));
    await journal.close();
    const adopted = await cli.run('adopt-ledger', '--journal', dir, '--yes', '--key', keyFile, ...WHY);
    expect(adopted).toMatchObject({ code: 0 });
    const { resumeAct, adoptAct } = await readSenderView(cli.ledger.connection);
    expect(requireAct(resumeAct).reason).toBe('again');
    expect(signerOf(resumeAct, aboutAccount('resume'))).toBe('ann of ann');
    expect(signerOf(adoptAct, aboutAccount('adopt'))).toBe('ann of ann');
  });

  it('names the option whose key or file cannot be used, shows nothing of it, and changes nothing', async () => {
    await sendSigned(cli.ledger, 'rejected', 'p');
    const { file: stranger } = await keys.makeKey('stranger');
    const secret = await cli.file('secret.pem', 'top-secret');
    await rename(sshFile.replace(/\.pub$/, ''), join(keys.dir, 'hidden'));
    const wrong: readonly [code: number, args: string[], message: RegExp][] = [
      [5, ['--key', join(keys.dir, 'shop.pem')], /"shop" has the role producer/],
      [5, ['--key', stranger], /\(ann, ann-ssh\)/],
      [5, ['--key', keyFile, '--key-name', 'bob'], /names this key "ann", not "bob"/],
      [2, ['--key', join(keys.dir, 'none')], /^payouts: --key: .*cannot be read/],
      [2, ['--key', secret], /holds no private key/],
      [2, ['--ssh-key', sshFile], /payouts: --ssh-key: was not used by/],
      [2, ['--key', keyFile, '--ssh-key', sshFile], /one key signs/],
    ];
    for (const [code, args, message] of wrong) {
      expect(await cli.refused(code, message, 'retry', 'p', ...args, ...WHY)).not.toContain('top-secret');
    }
    await chmod(keyring, 0o666);
    await cli.refused(2, /^payouts: PAYOUT_KEYS_FILE: .*is not trusted/, 'retry', 'p', '--key', keyFile, ...WHY);
    expect(await cli.states('p')).toEqual(['rejected']);
  });
});

it('without PAYOUT_KEYS_FILE nothing is signed, except with a key under the name that is given for it', async () => {
  delete cli.env['PAYOUT_KEYS_FILE'];
  await sendSigned(cli.ledger, 'rejected', 'p', 'q');
  expect(await cli.ok('retry', 'p', ...WHY)).toBe('Payout p is queued again.\n');
  expect((await cli.ledger.require('p')).act).toBeUndefined();
  await cli.refused(2, '--key-name: belongs to --key', 'resume', '--key-name', 'ann', ...WHY);
  await cli.refused(2, /^payouts: --key-name: is missing/, 'retry', 'q', '--key', keyFile, ...WHY);
  const named = await cli.ok('retry', 'q', '--key', keyFile, '--key-name', 'ann', ...WHY);
  expect(named).toBe('Payout q is queued again, signed with key ann.\n');
  expect(await signersOf('q')).toEqual(['ann of ann']);
});
