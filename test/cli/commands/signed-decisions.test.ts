import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { verifyAct } from '../../../src/control/approvals/act.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { readSenderView } from '../../../src/ledger/sender-view.js';
import { startSshAgent, type SshAgent } from '../../control/support/ssh-agent.js';
import { openTestKeys, type TestKeys } from '../../control/support/key-files.js';
import { sendOf } from '../../operator/support/older-ledger.js';
import { intentHashOf, requireAct, sendSigned } from '../../operator/support/signing-rig.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';
import { runInProcess } from '../support/in-process.js';
import { TEST_TRUST } from '../../control/support/keys.js';

const WHY = ['--reason', 'ticket 812', '--by', 'ann'];

let account: AccountCli;
let keys: TestKeys;
let keyFile: string;
let sshFile: string;
let env: Record<string, string>;

beforeEach(async () => {
  account = openAccountCli();
  keys = await openTestKeys();
  const [ann, shop, ssh] = [await keys.makeKey('ann'), await keys.makeKey('shop'), await keys.makeSshKey('id_ann')];
  [keyFile, sshFile] = [ann.file, ssh.file];
  const keyring = await keys.writeKeyring(
    { name: 'ann', role: 'operator', person: 'Ann', public: ann.public },
    { name: 'ann-ssh', role: 'operator', person: 'Ann', public: ssh.public },
    { name: 'shop', role: 'producer', person: 'Shop', public: shop.public },
  );
  env = { ...account.env, PAYOUT_KEYS_FILE: keyring, PATH: process.env['PATH'] ?? '' };
});

afterEach(async () => {
  await account.close();
  await keys.close();
});

const run = async (...args: string[]): Promise<CliResult> => runInProcess(args, env);
const runProcess = async (...args: string[]): Promise<CliResult> => runCli(args, { env });

/** Who signed the act, as a worker finds out; why it does not count otherwise. */
async function signerOf(payoutId: string): Promise<string> {
  const { platformId } = account.ledger.connection;
  const payout = await account.ledger.require(payoutId);
  const act = requireAct(payout.act);
  const wanted = {
    act: 'resend',
    payoutId,
    intent: intentHashOf(platformId, payout),
    attempt: payout.attempt,
  } as const;
  const verdict = verifyAct(
    platformId,
    act,
    wanted,
    readKeyringFile(env['PAYOUT_KEYS_FILE'] ?? '').for(TEST_TRUST),
    Date.now(),
  );
  return verdict.kind === 'verified' ? `${act.by} of ${verdict.person}` : verdict.message;
}

/** As {@link signerOf}, for an act about the account. */
function accountSigner(act: 'resume' | 'adopt', text: string | undefined): string {
  const { platformId } = account.ledger.connection;
  const wanted = { act, payoutId: '', intent: '', attempt: undefined };
  const keyring = readKeyringFile(env['PAYOUT_KEYS_FILE'] ?? '').for(TEST_TRUST);
  const verdict = verifyAct(platformId, requireAct(text), wanted, keyring, Date.now());
  return verdict.kind === 'verified' ? verdict.person : verdict.message;
}

describe('with PAYOUT_KEYS_FILE', () => {
  it.each([
    ['retry', 'p'],
    ['retry', '--state', 'rejected', '--yes'],
    ['resolve', 'p', '--not-sent'],
    ['resolve', '--file', 'f.csv', '--not-sent', '--expect-count', '1'],
    ['resume'],
    ['adopt-ledger', '--yes'],
  ])('%s needs a key', async (...args) => {
    await sendSigned(account.ledger, args[0] === 'resolve' ? 'unknown' : 'rejected', 'p');
    const result = await run(...args, ...WHY);
    expect(result).toMatchObject({ code: 5, stdout: '' });
    expect(result.stderr).toMatch(/^payouts: PAYOUT_KEYS_FILE is set, .*--key FILE .*--ssh-key FILE\.pub.*changed\n$/);
    expect((await account.ledger.require('p')).history.at(-1)?.to).not.toBe('queued');
  });

  it('what sends nothing again needs none, and takes one', async () => {
    await sendSigned(account.ledger, 'unknown', 'p', 'q', 'r');
    expect(await run('resolve', 'p', '--write-off', ...WHY)).toMatchObject({ code: 0 });
    const paid = await run('resolve', 'q', '--sent', '--force', '--txhash', 'h-1', '--key', keyFile, ...WHY);
    expect(paid).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Payout q is in_progress/) });
    const file = join(keys.dir, 'paid.csv');
    await writeFile(file, 'payout_id,txhash\nr,h-2\n');
    const many = await run('resolve', '--file', file, '--sent', '--force', '--yes', '--key', keyFile, ...WHY);
    expect(many).toMatchObject({ code: 0, stdout: expect.stringMatching(/1 payout in progress/) });
    expect(await run('pause', ...WHY)).toMatchObject({ code: 0 });
    expect(await run('resolve', '--file', file, '--not-sent', '--dry-run', ...WHY)).toMatchObject({ code: 2 });
    await writeFile(file, 'payout_id,txhash\nr,\n');
    expect(await run('resolve', '--file', file, '--not-sent', '--dry-run', ...WHY)).toMatchObject({ code: 0 });
    expect(await run('retry', '--state', 'rejected', '--dry-run', ...WHY)).toMatchObject({ code: 0 });
  });

  it('retry signs with a key file, and says so', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    const result = await runProcess('retry', 'p', '--key', keyFile, ...WHY);
    expect(result).toEqual({
      ...{ code: 0, signal: null, stderr: '' },
      stdout: 'Payout p is queued again, signed with key ann (ann).\n',
    });
    expect(await signerOf('p')).toBe('ann of ann');
  });

  it('resolve signs through ssh-agent, one payout or many of a file', async () => {
    await sendSigned(account.ledger, 'unknown', 'p', 'q', 'r');
    const agent = await startAgent();
    try {
      const one = await runProcess('resolve', 'p', '--not-sent', '--ssh-key', sshFile, ...WHY);
      expect(one).toMatchObject({ code: 0, stdout: expect.stringContaining('signed with key ann-ssh (ann).') });
      const file = join(keys.dir, 'payouts.csv');
      await writeFile(file, 'payout_id\nq\nr\n');
      const many = ['resolve', '--file', file, '--not-sent', '--expect-count', '2', '--ssh-key', sshFile, '--json'];
      const result = await runProcess(...many, ...WHY);
      expect(result).toMatchObject({ code: 0 });
      expect(JSON.parse(result.stdout)).toMatchObject({ payouts: 2, changed: 2, refused: 0 });
    } finally {
      await agent.stop();
    }
    expect(await Promise.all(['p', 'q', 'r'].map(signerOf))).toEqual(Array(3).fill('ann-ssh of ann'));
  });

  /** An agent that alone has the private key. */
  async function startAgent(): Promise<SshAgent> {
    const agent = await startSshAgent(keys.dir);
    const privateFile = sshFile.replace(/\.pub$/, '');
    agent.add(privateFile);
    await rm(privateFile);
    env['SSH_AUTH_SOCK'] = agent.socket;
    return agent;
  }

  it('retry of many signs each, and leaves those that no producer signed', async () => {
    await sendSigned(account.ledger, 'rejected', 'p', 'q');
    await account.enqueue('bare');
    await account.force('bare', 'rejected');
    await account.ledger.connection.redis.hset(account.ledger.connection.keys.payout('bare'), { attempt: 1 });
    const result = await run('retry', '--state', 'rejected', '--yes', '--key', keyFile, ...WHY);
    expect(result).toMatchObject({ code: 4, stdout: expect.stringContaining('2 payouts queued again.') });
    expect(result.stderr).toMatch(/Payout bare carries no signature of a producer/);
    expect(await Promise.all(['p', 'q'].map(signerOf))).toEqual(['ann of ann', 'ann of ann']);
  });

  it('resume signs, also where the account was not paused', async () => {
    await run('pause', ...WHY);
    const { platformId } = account.ledger.connection;
    const first = await run('resume', '--key', keyFile, ...WHY);
    expect(first).toMatchObject({ code: 0, stdout: `Account ${platformId} sends again, signed with key ann (ann).\n` });
    const second = await run('resume', '--key', keyFile, '--reason', 'again', '--by', 'ann');
    expect(second.stdout).toMatch(/was not paused; what key ann \(ann\) signed is kept for workers/);
    const { resumeAct } = await readSenderView(account.ledger.connection);
    expect(requireAct(resumeAct).reason).toBe('again');
    expect(accountSigner('resume', resumeAct)).toBe('ann');
  });

  it('adopt-ledger signs', async () => {
    const dir = join(keys.dir, 'journal');
    await mkdir(dir);
    const journal = await FileSendJournal.open({ dir, platformId: account.ledger.connection.platformId });
    await journal.bind({ ledgerId: 'former', epoch: 1, sends: 0, token: '' });
    await journal.append(sendOf('p-1', 1));
    await journal.close();
    const result = await run('adopt-ledger', '--journal', dir, '--yes', '--key', keyFile, ...WHY);
    expect(result).toMatchObject({ code: 0 });
    const { adoptAct } = await readSenderView(account.ledger.connection);
    expect(accountSigner('adopt', adoptAct)).toBe('ann');
  });

  it('refuses a key that would not count, before anything is changed', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    const shop = join(keys.dir, 'shop.pem');
    const wrongRole = await run('retry', 'p', '--key', shop, ...WHY);
    expect(wrongRole).toMatchObject({ code: 5, stderr: expect.stringContaining('"shop" has the role producer') });
    const { file: stranger } = await keys.makeKey('stranger');
    const unknown = await run('retry', 'p', '--key', stranger, ...WHY);
    expect(unknown).toMatchObject({ code: 5, stderr: expect.stringContaining('(ann, ann-ssh)') });
    const renamed = await run('retry', 'p', '--key', keyFile, '--key-name', 'bob', ...WHY);
    expect(renamed).toMatchObject({ code: 5, stderr: expect.stringContaining('names this key "ann", not "bob"') });
    expect(await account.ledger.require('p')).toMatchObject({ state: 'rejected' });
  });

  it('names the option whose file cannot be used, and never shows what is in it', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    const missing = await run('retry', 'p', '--key', join(keys.dir, 'none'), ...WHY);
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringMatching(/^payouts: --key: .*cannot be read/) });
    const secret = join(keys.dir, 'secret.pem');
    await writeFile(secret, 'top-secret', { mode: 0o600 });
    const other = await run('retry', 'p', '--key', secret, ...WHY);
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('holds no private key') });
    expect(other.stderr).not.toContain('top-secret');
    await rename(sshFile.replace(/\.pub$/, ''), join(keys.dir, 'hidden'));
    const noKey = await run('retry', 'p', '--ssh-key', sshFile, ...WHY);
    expect(noKey).toMatchObject({ code: 2, stderr: expect.stringContaining('payouts: --ssh-key: was not used by') });
    const both = await run('retry', 'p', '--key', keyFile, '--ssh-key', sshFile, ...WHY);
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('one key signs') });
    await chmod(env['PAYOUT_KEYS_FILE'] ?? '', 0o666);
    const open = await run('retry', 'p', '--key', keyFile, ...WHY);
    expect(open).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^payouts: PAYOUT_KEYS_FILE: .*is not trusted/),
    });
    expect(await account.ledger.require('p')).toMatchObject({ state: 'rejected' });
  });
});

describe('without PAYOUT_KEYS_FILE', () => {
  beforeEach(() => {
    delete env['PAYOUT_KEYS_FILE'];
  });

  it('nothing is signed, and nothing says so', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    expect(await run('retry', 'p', ...WHY)).toMatchObject({ code: 0, stdout: 'Payout p is queued again.\n' });
    expect((await account.ledger.require('p')).act).toBeUndefined();
    const lonely = await run('resume', '--key-name', 'ann', ...WHY);
    expect(lonely).toMatchObject({ code: 2, stderr: expect.stringContaining('--key-name: belongs to --key') });
  });

  it('a key signs under the name that is given for it', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    const nameless = await run('retry', 'p', '--key', keyFile, ...WHY);
    expect(nameless).toMatchObject({ code: 2, stderr: expect.stringMatching(/^payouts: --key-name: is missing/) });
    const named = await run('retry', 'p', '--key', keyFile, '--key-name', 'ann', ...WHY);
    expect(named).toMatchObject({ code: 0, stdout: 'Payout p is queued again, signed with key ann.\n' });
    env['PAYOUT_KEYS_FILE'] = join(keys.dir, 'keys.json');
    expect(await signerOf('p')).toBe('ann of ann');
  });
});
