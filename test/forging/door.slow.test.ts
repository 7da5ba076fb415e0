import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type RunningDoor, startDoor } from '../../src/http/start-door.js';
import { createToken, RIGHTS } from '../../src/http/tokens.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';
import { until } from '../support/until.js';
import { askDoor, doorOptions } from '../http/support/door-rig.js';
import { type AskDoor, THROUGH_DOOR } from './attacks/through-door.js';
import type { Attack } from './support/attack.js';
import { ForgingWorld } from './support/forging-world.js';
import {
  type Attempted,
  carryOut,
  enqueueHonest,
  enqueueTargets,
  expectOutcome,
  judgeBook,
  plan,
  untilDecided,
} from './support/run-attacks.js';

/** Someone with a token of the HTTP door and no key, beside a real worker. */

const PER_ACCOUNT = 8;

let world: ForgingWorld;
let doors: Readonly<Record<'withKeyring' | 'without', RunningDoor>>;
let attempted: Attempted[];
const tokens = new Map<number, string>();

const ask: AskDoor = async ({ account }, method, path, body) =>
  askDoor(doors.withKeyring.url, method, path, { token: tokens.get(account.platformId), body });

beforeAll(async () => {
  world = await ForgingWorld.open(Math.ceil(THROUGH_DOOR.length / PER_ACCOUNT) + 1);
  const platformIds = world.accounts.map(({ platformId }) => platformId);
  const lines = platformIds.map((account) => {
    const { token, line } = createToken({ name: 'thief', account, rights: [...RIGHTS] });
    tokens.set(account, token);
    return line;
  });
  const tokensFile = join(world.dir, 'tokens.yaml');
  await writeFile(tokensFile, lines.join('\n'), { mode: 0o600 });
  const options = { platformIds, redisUrl: world.redis.url };
  doors = {
    withKeyring: await startDoor(
      doorOptions(tokensFile, {
        ...options,
        keysFile: join(world.dir, 'keys.json'),
        audiences: new Map(platformIds.map((platformId) => [platformId, TEST_AUDIENCE])),
      }),
    ),
    without: await startDoor(doorOptions(tokensFile, options)),
  };
  const attacks = THROUGH_DOOR.map((attack): Attack => ({
    ...attack,
    attack: async (target) => attack.attack(target, ask),
  }));
  attempted = plan(world, attacks, PER_ACCOUNT);
  await enqueueTargets(attempted);
  await carryOut(attempted);
  await enqueueHonest(world.accounts);
  await world.startWorker();
}, 120_000);

afterAll(async () => {
  await Promise.all(Object.values(doors).map(async (door) => door.close()));
  await world.close();
});

it('every attack comes to an end', async () => {
  await untilDecided(attempted);
});

describe('a thief with a token and without a key', () => {
  it.each(THROUGH_DOOR.map((attack, index) => ({ name: attack.name, expected: attack.expect, index })))(
    '$name: $expected',
    async ({ index }) => {
      const each = attempted[index];
      if (each === undefined) throw new Error('Every attack has a target');
      await expectOutcome(world, each);
    },
  );

  it('gets nothing unsigned sent by a door that has no keyring either', async () => {
    const account = world.account(0);
    const payout = { payoutId: 'unsigned', paymentId: 6, amount: '1', addressTo: 'wallet-unsigned' };
    const answer = await askDoor(doors.without.url, 'POST', '/v1/payouts', {
      token: tokens.get(account.platformId),
      body: payout,
    });
    expect(answer.status).toBe(201);
    await until('it is decided', async () => (await account.payout('unsigned')).state !== 'queued');
    expect(await account.payout('unsigned')).toMatchObject({ state: 'held', held: { reason: 'unsigned' } });
  });
});

it('nothing else was paid in any account, and the honest payouts were', async () => {
  for (const account of world.accounts) {
    judgeBook(world, account);
    expect((await account.payout('honest')).state).toBe('completed');
  }
});
