import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { until } from '../support/until.js';
import { openWorld, type PayoutWorld } from '../worker/support/payout-world.js';
import { runExample } from './support.js';

const [SHOP, WORKER] = [testKey(1), testKey(2)];

let world: PayoutWorld;
beforeEach(async () => (world = await openWorld()));
afterEach(async () => world.close());

/** A worker with a keyring. @returns what the example finds in its environment */
async function startSigned(workerKey: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const keysFile = join(world.dir, 'keys.json');
  const keys = [keyEntry(SHOP), keyEntry(WORKER, { name: 'worker-1', role: 'worker', person: 'Host 1' })];
  await writeFile(keysFile, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  for (const [name, key] of [
    ['shop', SHOP],
    ['worker-1', WORKER],
  ] as const) {
    const pem = key.export({ format: 'pem', type: 'pkcs8' });
    await writeFile(join(world.dir, `${name}.pem`), pem, { mode: 0o600 });
  }
  const worker = world.startWorker({ environment: { PAYOUT_KEYS_FILE: keysFile, ...workerKey } });
  // What was signed before the worker's journal was begun is held.
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  return {
    GATEWAY_PLATFORM_ID: String(world.platformId),
    PAYOUT_SIGNING_KEY_FILE: join(world.dir, 'shop.pem'),
    PAYOUT_KEYS_FILE: keysFile,
    PAYOUT_AUDIENCE: TEST_AUDIENCE,
  };
}

it('examples/signing/pay-signed.ts books what a worker signed as paid', async () => {
  const file = join(world.dir, 'worker-1.pem');
  const environment = await startSigned({ PAYOUT_WORKER_KEY_FILE: file, PAYOUT_WORKER_KEY_NAME: 'worker-1' });
  const { ended, output } = await runExample('signing/pay-signed.ts', environment).end();
  expect(output).toMatch(/^withdrawal-88132 is paid: \S+\n$/);
  expect(ended).toEqual([0, null]);
}, 60_000);

it('examples/signing/pay-signed.ts books nothing that no worker signed', async () => {
  const environment = await startSigned({});
  const { ended, output } = await runExample('signing/pay-signed.ts', environment).end();
  expect(output).toBe('withdrawal-88132 is shown as completed, and not booked: no worker signed that\n');
  expect(ended).toEqual([1, null]);
}, 60_000);
