import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ALTERED, NOT_SIGNED } from './attacks/altered.js';
import { FORGED, SWAPPED } from './attacks/forged.js';
import { ForgingWorld } from './support/forging-world.js';
import {
  carryOut,
  enqueueHonest,
  enqueueTargets,
  expectOutcome,
  judgeBook,
  plan,
  untilDecided,
  type Attempted,
} from './support/run-attacks.js';

/** Attacks on what waits to be sent, all before one worker starts: queues of an account take a job a second. */

const ATTACKS = [...ALTERED, ...NOT_SIGNED, ...FORGED, SWAPPED];
const PER_ACCOUNT = 8;

let world: ForgingWorld;
let attempted: Attempted[];

beforeAll(async () => {
  world = await ForgingWorld.open(Math.ceil(ATTACKS.length / PER_ACCOUNT) + 1);
  attempted = plan(world, ATTACKS, PER_ACCOUNT);
  await enqueueTargets(attempted);
  await carryOut(attempted);
  await enqueueHonest(world.accounts);
  await world.startWorker();
}, 120_000);

afterAll(async () => {
  await world.close();
});

it('every attack comes to an end', async () => {
  await untilDecided(attempted);
});

it.each(ATTACKS.map((attack, index) => ({ name: attack.name, expected: attack.expect, index })))(
  '$name: $expected',
  async ({ index }) => {
    const each = attempted[index];
    if (each === undefined) throw new Error('Every attack has a target');
    await expectOutcome(world, each);
  },
);

it('nothing else was paid in any account, and the honest payouts were', async () => {
  for (const account of world.accounts) {
    judgeBook(world, account);
    expect((await account.payout('honest')).state).toBe('completed');
  }
});
