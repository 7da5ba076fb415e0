import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { runInProcess } from '../cli/support/in-process.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, TEST_AUDIENCE, testKey, testSigner } from '../control/support/keys.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { untilLeased, worldOfTest } from './support/payout-world.js';

const WAIT = { timeoutMs: 40_000 };
const SHOP = keyEntry(testKey(1));
const ANN = keyEntry(testKey(2), { name: 'ann', role: 'approver', person: 'ann' });
const OLGA = keyEntry(testKey(3), { name: 'olga', role: 'operator', person: 'olga' });

it.each([
  ['with a keyring', true],
  ['without one', false],
])(
  'without a policy, a rejected payout is not paid until its person takes the rejection back: a worker %s',
  async (_, hasKeys) => {
    const world = await worldOfTest();
    const file = (name: string) => join(world.dir, name);
    const keysFile = await writeKeyring(file('keys.json'), [SHOP, ANN, OLGA]);
    const annKey = await writePrivateKey(file('ann.pem'), testKey(2));
    const olgaKey = await writePrivateKey(file('olga.pem'), testKey(3));
    const say = async (...args: string[]) => {
      const { code, stderr } = await runInProcess(args, { ...world.env, PAYOUT_KEYS_FILE: keysFile });
      if (code !== 0) throw new Error(`${args.join(' ')} ended with ${String(code)}: ${stderr}`);
    };
    const environment: Record<string, string> = hasKeys ? { PAYOUT_KEYS_FILE: keysFile } : {};
    // What was signed before the worker's journal was begun is held.
    await untilLeased(world.startWorker({ environment }));
    const producer = closeAfterTest(
      new PayoutProducer({ ...world.account, audience: TEST_AUDIENCE, signer: testSigner('shop', 1) }),
    );
    const enqueue = async (payoutId: string) =>
      producer.enqueue({ payoutId, paymentId: 1, amount: '0.01', addressTo: `wallet-${payoutId}` });
    await enqueue('first');
    expect(await producer.waitFor('first', WAIT)).toMatchObject({ state: 'completed' });
    await say('pause', '--reason', 'two come');
    for (const payoutId of ['rejected', 'other']) await enqueue(payoutId);
    await say('reject', 'rejected', '--key', annKey, '--reason', 'wrong address');
    await say('resume', '--key', olgaKey, '--reason', 'go on');
    expect(await producer.waitFor('other', WAIT)).toMatchObject({ state: 'completed' });
    expect(await producer.get('rejected')).toMatchObject({ state: 'held', held: { kind: 'rejection' } });

    // Neither a release nor a second signature is a word of that person.
    await say('release', 'rejected', '--reason', 'it looks right');
    await enqueue('rejected');
    await until('it is held', async () => (await producer.get('rejected'))?.state === 'held');
    expect(world.sandbox.stats().arrivals).toBe(2);
    await say('unreject', 'rejected', '--key', annKey, '--reason', 'the shop confirmed it', '--yes');
    expect(await producer.waitFor('rejected', WAIT)).toMatchObject({ state: 'completed' });
    expect(world.sandbox.stats().arrivals).toBe(3);
  },
  60_000,
);
