import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { type RunningDoor, startDoor } from '../../src/http/start-door.js';
import { createToken, RIGHTS } from '../../src/http/tokens.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { askDoor, doorOptions } from '../http/support/door-rig.js';
import { ALTERED, FORGED, NOT_SIGNED, REVIVED, STOPPING, SWAPPED, throughDoor } from './attacks/payouts.js';
import { ForgingWorld } from './support/forging-world.js';
import * as run from './support/forging-world.js';

describe('what waits to be sent, before a worker starts', () => {
  const ATTACKS = [...ALTERED, ...NOT_SIGNED, ...FORGED, SWAPPED];
  /** Queues of an account take a job a second. */
  const PER_ACCOUNT = 8;
  const used = ForgingWorld.use(Math.ceil(ATTACKS.length / PER_ACCOUNT) + 1);
  let attempted: run.Attempted[];

  beforeAll(async () => {
    attempted = run.plan(used.world, ATTACKS, PER_ACCOUNT);
    await run.enqueueTargets(attempted);
    await run.carryOut(attempted);
    await run.enqueueHonest(used.world.accounts);
    await used.world.startWorker();
  }, 120_000);

  run.testAttacks(ATTACKS, () => ({ world: used.world, attempted }));
});

describe('what was sent, or decided about, under a running worker', () => {
  const PER_ACCOUNT = 6;
  const shared = Math.ceil(REVIVED.length / PER_ACCOUNT);
  // The addresses are known before the accounts are: see `plan`.
  const failAddresses = REVIVED.flatMap(({ from }, index) => (from === 'failed' ? [`wallet-fails${index}`] : []));
  // What stops an account has one of its own.
  const used = ForgingWorld.use(shared + STOPPING.length + 1, { failAddresses });
  let attempted: run.Attempted[];

  beforeAll(async () => {
    const { world } = used;
    attempted = [...run.plan(world, REVIVED, PER_ACCOUNT), ...run.plan(world, STOPPING, 1, shared)];
    world.sandbox.setFaults(run.faultsOf(attempted));
    await run.enqueueTargets(attempted);
    await world.startWorker();
    await run.untilReached(attempted);
    await run.carryOut(attempted);
    await run.enqueueHonest(world.accounts);
  }, 120_000);

  run.testAttacks([...REVIVED, ...STOPPING], () => ({ world: used.world, attempted }));
});

describe('what someone with a token of the HTTP door and no key asks for', () => {
  const used = ForgingWorld.use(2);
  let [door, token, attempted]: [RunningDoor, string, run.Attempted[]] = [undefined as never, '', []];
  const ATTACKS = throughDoor(async (statuses, _, method, path, body) => {
    const answer = await askDoor(door.url, method, path, { token, body });
    if ([statuses].flat().includes(answer.status)) return;
    throw new Error(`the door answered ${answer.status}: ${JSON.stringify(answer)}`);
  });

  beforeAll(async () => {
    const { world } = used;
    const { platformId } = world.account(0);
    const thief = createToken({ name: 'thief', account: platformId, rights: [...RIGHTS] });
    const tokensFile = join(world.dir, 'tokens.yaml');
    await writeFile(tokensFile, thief.line, { mode: 0o600 });
    const options = { platformIds: [platformId], redisUrl: world.redis.url, keysFile: world.keysFile };
    door = await startDoor(doorOptions(tokensFile, { ...options, audiences: new Map([[platformId, TEST_AUDIENCE]]) }));
    ({ token } = thief);
    attempted = run.plan(world, ATTACKS, ATTACKS.length);
    await run.enqueueTargets(attempted);
    await run.carryOut(attempted);
    await run.enqueueHonest(world.accounts);
    await world.startWorker();
  }, 120_000);
  afterAll(async () => door.close());

  run.testAttacks(ATTACKS, () => ({ world: used.world, attempted }));
});
