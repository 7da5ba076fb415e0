import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { runCli } from '../../support/cli.js';
import { folderOfTest } from '../../worker/support/close-after-test.js';
import { SECRET_KEY, worldOfTest } from '../../worker/support/payout-world.js';

/** As a network disk whose server is gone: a read of the file never returns, and the thread that asked hangs. */
const HANGING_READ = `
import fs from 'node:fs';
const { readFileSync, openSync } = fs;
const hangs = (path) => String(path) === process.env.HANGING_FILE && Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
fs.readFileSync = (path, ...others) => { hangs(path); return readFileSync(path, ...others); };
fs.openSync = (path, ...others) => { hangs(path); return openSync(path, ...others); };
(await import('node:module')).syncBuiltinESMExports();
`;

it('doctor gives each check its time: one that hangs is named, the others are shown, and it ends', async () => {
  const world = await worldOfTest();
  const dir = await folderOfTest('hanging');
  const [preload, keys] = [join(dir, 'hanging.mjs'), join(dir, 'keys.yaml')];
  await writeFile(preload, HANGING_READ);
  await writeFile(keys, 'keys: []\n', { mode: 0o600 });
  await mkdir(join(world.dir, 'journal'), { recursive: true });
  const gateway = { GATEWAY_BASE_URL: world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY };
  const env = { ...world.env, ...gateway, PAYOUT_KEYS_FILE: keys };
  const hanging = { ...env, NODE_OPTIONS: `--import=${preload}`, HANGING_FILE: keys };
  const [usual, hung] = await Promise.all(
    [env, hanging].map(async (each) => runCli(['doctor', '--json'], { env: each })),
  );
  const read = (text = '') => (JSON.parse(text) as { checks: CheckResult[] }).checks;
  expect(hung).toMatchObject({ code: 1, signal: null });
  const found = read(hung?.stdout);
  expect(found.filter(({ name }) => name === 'keys')).toEqual([
    expect.objectContaining({ status: 'problem', detail: 'no result within 40 s: a disk or Redis does not answer' }),
  ]);
  // The checks of signatures need the keyring.
  const others = (checks: readonly CheckResult[]) =>
    new Set(checks.map(({ name }) => name).filter((name) => !/keys|signed/.test(name)));
  expect(others(found)).toEqual(others(read(usual?.stdout)));
}, 180_000);
