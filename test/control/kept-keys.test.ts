import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { keySigner } from '../../src/control/keys/signing-key.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { runInProcess } from '../cli/support/in-process.js';
import { until } from '../support/until.js';
import { afterTest } from '../worker/support/close-after-test.js';
import { openWorkerIn, worldOfTest } from '../worker/support/payout-world.js';
import { writeKeyring, writePrivateKey } from './support/key-files.js';
import { keyEntry, TEST_AUDIENCE as audience, testKey } from './support/keys.js';
import { startSshAgent } from './support/ssh-agent.js';

/** Approvers and operators whose key is in a real ssh-agent, or behind a real program: a real worker counts them. */

const WAIT = { timeoutMs: 30_000 };
const FOUR_EYES =
  "{ name: four-eyes, when: { paymentId: ['1'] }, cap: { amount: '0.005' }, over: { approve: { by: finance, quorum: 2 } } }";

async function openWorldWithKeys() {
  const world = await worldOfTest();
  const { dir, platformId, env } = world;
  const agentOf = async (name: string) => {
    await mkdir(join(dir, name));
    const agent = await startSshAgent(join(dir, name));
    afterTest(async () => agent.stop());
    return agent;
  };
  const [ann, olga] = [await agentOf('ann'), await agentOf('olga')];
  const programOf = async (name: string, number: number) => {
    const [key, file] = [await writePrivateKey(join(dir, `${name}.pem`), testKey(number)), join(dir, `${name}.cjs`)];
    const source = `#!${process.execPath}
      const [{ sign }, { readFileSync }] = [require('node:crypto'), require('node:fs')];
      process.stdout.write(sign(null, readFileSync(0), readFileSync('${key}', 'utf8')).toString('base64url'));`;
    await writeFile(file, source, { mode: 0o700 });
    return `exec:${file}`;
  };
  const entry = (name: string, role: 'approver' | 'operator', number: number) =>
    keyEntry(testKey(number), { name, role, person: name });
  const keysFile = await writeKeyring(join(dir, 'keys.json'), [
    keyEntry(testKey(1)),
    { ...entry('ann', 'approver', 2), public: ann.public },
    entry('bob', 'approver', 3),
    { ...entry('olga', 'operator', 4), public: olga.public },
    entry('otto', 'operator', 5),
  ]);
  const policyFile = join(dir, 'policy.yaml');
  const head = `version: 1\nplatformId: '${platformId}'\ndefault: send\ngroups: { finance: [ann, bob] }\n`;
  await writeFile(policyFile, `${head}rules:\n  - ${FOUR_EYES}\n`, { mode: 0o600 });
  const producer = new PayoutProducer({
    ...world.account,
    ...{ audience, keysFile, signer: keySigner('shop', testKey(1)) },
  });
  afterTest(async () => producer.close());
  await openWorkerIn(world, { keysFile }, { policyFile, audience });
  const run = async (socket: string, ...args: string[]) =>
    runInProcess(args, { ...env, PAYOUT_KEYS_FILE: keysFile, SSH_AUTH_SOCK: socket });
  return { world, producer, ann, olga, run, bob: await programOf('bob', 3), otto: await programOf('otto', 5) };
}

const payment = (payoutId: string, amount: string) => {
  return { payoutId, paymentId: 1, amount, addressTo: `wallet-${payoutId}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` };
};

it('a worker counts the approvals of an ssh-agent and of a program, and waits for both', async () => {
  const { producer, ann, bob, run } = await openWorldWithKeys();
  await producer.enqueue(payment('p', '0.01'));
  await until('it is held', async () => (await producer.get('p'))?.state === 'held');
  const approve = ['approve', 'p', '--yes', '--key'];
  expect(await run(ann.socket, ...approve, ann.from)).toMatchObject({ code: 0 });
  // The worker looks at what is held each second.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(await producer.get('p')).toMatchObject({ state: 'held' });
  expect(await run('', ...approve, bob, '--key-name', 'bob')).toMatchObject({ code: 0 });
  await until('it is paid', async () => (await producer.get('p'))?.state === 'completed');
}, 60_000);

it.each([['an ssh-agent'], ['a program']])(
  'a worker counts the act of an operator whose key is in %s',
  async (place) => {
    const { world, producer, olga, otto, run } = await openWorldWithKeys();
    const key = place === 'a program' ? [otto, '--key-name', 'otto'] : [olga.from];
    world.sandbox.setFaults([{ kind: 'reject', times: 1 }]);
    await producer.enqueue(payment('q', '0.001'));
    expect(await producer.waitFor('q', WAIT)).toMatchObject({ state: 'rejected' });
    const { code, stdout } = await run(olga.socket, 'retry', 'q', '--reason', 'asked the gateway', '--key', ...key);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/queued again, signed with key (otto|olga) /)]);
    expect(await producer.waitFor('q', WAIT)).toMatchObject({ state: 'completed' });
  },
  60_000,
);
