import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startDoor, type RunningDoor } from '../../src/http/start-door.js';
import { createToken, RIGHTS } from '../../src/http/tokens.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { askDoor, doorOptions } from '../http/support/door-rig.js';
import { THROUGH_DOOR } from './attacks/through-door.js';
import { ForgingWorld } from './support/forging-world.js';
import { carryOut, enqueueHonest, enqueueTargets, plan, testAttacks, type Attempted } from './support/run-attacks.js';

/** Someone with a token of the HTTP door and no key, beside a real worker. */

const PER_ACCOUNT = 8;
const used = ForgingWorld.use(Math.ceil(THROUGH_DOOR.length / PER_ACCOUNT) + 1);
const doors: RunningDoor[] = [];
const tokens = new Map<number, string>();
let attempted: Attempted[];

const ATTACKS = THROUGH_DOOR.map((toAttack) =>
  toAttack(async (statuses, { account: { platformId } }, method, path, body) => {
    const answer = await askDoor(doors[0]?.url ?? '', method, path, { token: tokens.get(platformId), body });
    if ([statuses].flat().includes(answer.status)) return;
    throw new Error(`the door answered ${answer.status}: ${JSON.stringify(answer)}`);
  }),
);

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
  for (const keys of [{ keysFile: world.keysFile, audiences }, {}])
    doors.push(await startDoor(doorOptions(tokensFile, { ...options, ...keys })));
  attempted = plan(world, ATTACKS, PER_ACCOUNT);
  await enqueueTargets(attempted);
  await carryOut(attempted);
  await enqueueHonest(world.accounts);
  await world.startWorker();
}, 120_000);

afterAll(async () => Promise.all(doors.map(async (door) => door.close())));

testAttacks(ATTACKS, () => ({ world: used.world, attempted }));

it('nothing unsigned is sent by a door that has no keyring either', async () => {
  const account = used.world.account(0);
  const body = { payoutId: 'unsigned', paymentId: 6, amount: '1', addressTo: 'wallet-unsigned' };
  const token = tokens.get(account.platformId);
  expect((await askDoor(doors[1]?.url ?? '', 'POST', '/v1/payouts', { token, body })).status).toBe(201);
  await used.world.untilIn('held', account, 'unsigned');
  expect((await account.payout('unsigned')).held?.reason).toBe('unsigned');
});
