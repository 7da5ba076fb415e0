import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startDoor, type RunningDoor } from '../../src/http/start-door.js';
import { createToken, RIGHTS } from '../../src/http/tokens.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { askDoor, doorOptions } from '../http/support/door-rig.js';
import { until } from '../support/until.js';
import { THROUGH_DOOR, type AskDoor } from './attacks/through-door.js';
import type { Attack } from './support/attack.js';
import { ForgingWorld } from './support/forging-world.js';
import { carryOut, enqueueHonest, enqueueTargets, plan, testAttacks, type Attempted } from './support/run-attacks.js';

/** Someone with a token of the HTTP door and no key, beside a real worker. */

const PER_ACCOUNT = 8;
const used = ForgingWorld.use(Math.ceil(THROUGH_DOOR.length / PER_ACCOUNT) + 1);
let doors: Readonly<Record<'withKeyring' | 'without', RunningDoor>>;
let attempted: Attempted[];
const tokens = new Map<number, string>();

const ask: AskDoor = async (statuses, { account: { platformId } }, method, path, body) => {
  const answer = await askDoor(doors.withKeyring.url, method, path, { token: tokens.get(platformId), body });
  if ([statuses].flat().includes(answer.status)) return;
  throw new Error(`the door answered ${answer.status}: ${JSON.stringify(answer)}`);
};

beforeAll(async () => {
  const { world } = used;
  const platformIds = world.accounts.map(({ platformId }) => platformId);
  const lines = platformIds.map((account) => {
    const { token, line } = createToken({ name: 'thief', account, rights: [...RIGHTS] });
    tokens.set(account, token);
    return line;
  });
  const tokensFile = join(world.dir, 'tokens.yaml');
  await writeFile(tokensFile, lines.join('\n'), { mode: 0o600 });
  const options = { platformIds, redisUrl: world.redis.url };
  const audiences = new Map(platformIds.map((platformId) => [platformId, TEST_AUDIENCE]));
  doors = {
    withKeyring: await startDoor(doorOptions(tokensFile, { ...options, keysFile: world.keysFile, audiences })),
    without: await startDoor(doorOptions(tokensFile, options)),
  };
  const attacks = THROUGH_DOOR.map((row): Attack => ({ ...row, attack: async (target) => row.attack(target, ask) }));
  attempted = plan(world, attacks, PER_ACCOUNT);
  await enqueueTargets(attempted);
  await carryOut(attempted);
  await enqueueHonest(world.accounts);
  await world.startWorker();
}, 120_000);

afterAll(async () => Promise.all(Object.values(doors).map(async (door) => door.close())));

testAttacks(THROUGH_DOOR, () => ({ world: used.world, attempted }));

it('nothing unsigned is sent by a door that has no keyring either', async () => {
  const account = used.world.account(0);
  const body = { payoutId: 'unsigned', paymentId: 6, amount: '1', addressTo: 'wallet-unsigned' };
  const token = tokens.get(account.platformId);
  expect((await askDoor(doors.without.url, 'POST', '/v1/payouts', { token, body })).status).toBe(201);
  await until('it is held', async () => account.isIn('held', 'unsigned'));
  expect((await account.payout('unsigned')).held?.reason).toBe('unsigned');
});
