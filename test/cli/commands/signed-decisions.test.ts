import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readSenderView } from '../../../src/ledger/sender-view.js';
import { openTestKeys, type TestKeys } from '../../control/support/key-files.js';
import { requireAct, sendSigned } from '../../operator/support/operator-rig.js';
import { until } from '../../support/until.js';
import { textWith, useCli } from '../support/cli-rig.js';

/** What an operator's key signs, and which commands need one. */

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

/** By whose key, and why, what sends it again is signed. */
const actOf = async (payoutId: string) => {
  const { by, reason } = requireAct((await cli.ledger.require(payoutId)).act);
  return `${by}: ${reason}`;
};

/** An agent that has this key alone. */
async function startSshAgent(privateKeyFile: string) {
  const socket = join(keys.dir, 'agent');
  const child = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  await until('the agent listens', () => existsSync(socket));
  cli.env['SSH_AUTH_SOCK'] = socket;
  const { status, stderr } = spawnSync('ssh-add', ['-q', privateKeyFile], { env: { ...process.env, ...cli.env } });
  if (status !== 0) throw new Error(`ssh-add: ${String(stderr)}`);
  return {
    async stop() {
      const ended = once(child, 'close');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Puts it where `ssh-keygen` does not look for it. @returns its new place */
async function hidePrivateKey() {
  const hidden = join(keys.dir, 'hidden');
  await rename(sshFile.replace(/\.pub$/, ''), hidden);
  return hidden;
}

it.each([
  ['retry', 'p'],
  ['resolve', 'p', '--not-sent', '--attempt', '1'],
  ['resolve', '--file', 'f.csv', '--not-sent', '--expect-count', '1'],
  ['resume'],
  ['adopt-ledger', '--yes'],
])('%s needs a key', async (...args) => {
  await sendSigned(cli.ledger, args[0] === 'resolve' ? 'unknown' : 'rejected', 'p');
  const needed = /^payouts: PAYOUT_KEYS_FILE is set, .*--key FILE .*ssh:FILE\.pub.*changed\n$/;
  await cli.refused(5, needed, ...args, ...WHY);
  expect(await cli.states('p')).not.toEqual(['queued']);
});

it('retry and resume sign with a key file, and say so', async () => {
  await sendSigned(cli.ledger, 'rejected', 'p');
  const stdout = await cli.ok('retry', 'p', '--key', keyFile, ...WHY);
  expect(stdout).toBe('Payout p is queued again, signed with key ann (ann).\n');
  expect(await actOf('p')).toBe('ann: ticket 812');
  await cli.ok('pause', ...WHY);
  const resumed = await cli.ok('resume', '--key', keyFile, ...WHY);
  expect(resumed).toBe(`Account ${cli.platformId} sends again, signed with key ann (ann).\n`);
  const { resumeAct } = await readSenderView(cli.ledger.connection);
  expect(requireAct(resumeAct)).toMatchObject({ act: 'resume', by: 'ann' });
  const kept = /was not paused; what key ann \(ann\) signed is kept for workers/;
  expect(await cli.ok('resume', '--key', keyFile, '--reason', 'again')).toMatch(kept);
});

it('resolve signs with a key that the agent alone has, one payout or many', async () => {
  await sendSigned(cli.ledger, 'unknown', 'p', 'q', 'r');
  const agent = await startSshAgent(await hidePrivateKey());
  const file = await cli.file('payouts.csv', 'payout_id,attempt', 'q,1', 'r,1');
  const resolve = async (...args: string[]) =>
    cli.run('resolve', ...args, '--not-sent', '--key', `ssh:${sshFile}`, ...WHY);
  const one = await resolve('p', '--attempt', '1');
  const many = await resolve('--file', file, '--expect-count', '2');
  await agent.stop();
  expect(one).toMatchObject({ code: 0, stdout: textWith('signed with key ann-ssh (ann).') });
  expect(many).toMatchObject({ code: 0, stdout: textWith('2 payouts queued again') });
  for (const payoutId of ['p', 'q', 'r']) expect(await actOf(payoutId)).toBe('ann-ssh: ticket 812');
  // After the key was stolen: what it signed, under any name.
  const signed = await cli.ok('activity', '--key', 'ann-ssh', '--all');
  expect(signed).toMatch(/ann \(key ann-ssh\) +2 payouts \(file payouts\.csv\) resolved as not sent, queued again +/);
  expect(signed).toMatch(/ann \(key ann-ssh\) +p resolved as not sent, queued again +now queued +ticket 812/);
  expect(signed.trim().split('\n')).toHaveLength(2);
});

it('names the option whose key or file cannot be used', async () => {
  await sendSigned(cli.ledger, 'rejected', 'p');
  await hidePrivateKey();
  const wrong: readonly [code: number, args: string[], message: RegExp][] = [
    [5, ['--key', join(keys.dir, 'shop.pem')], /"shop" has the role producer/],
    [2, ['--key', join(keys.dir, 'none')], /^payouts: --key: .*cannot be read/],
    [1, ['--key', `ssh:${sshFile}`], /was not used by ssh-keygen/],
    [2, ['--key', 'agent:MD5:1'], /^payouts: --key: must be agent: and a fingerprint/],
    [2, ['--key', `exec:${keyFile}`], /^payouts: --key: is exec:, which needs the key's name and the keyring/],
  ];
  for (const [code, args, message] of wrong) {
    await cli.refused(code, message, 'retry', 'p', ...args, ...WHY);
  }
  expect(await cli.states('p')).toEqual(['rejected']);
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
  expect(await actOf('q')).toBe('ann: ticket 812');
});
