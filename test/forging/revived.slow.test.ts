import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { REVIVED, STOPPING } from './attacks/revived.js';
import { ForgingWorld } from './support/forging-world.js';
import {
  carryOut,
  enqueueHonest,
  enqueueTargets,
  expectOutcome,
  faultsOf,
  judgeBook,
  plan,
  timesPaid,
  untilDecided,
  untilReached,
  type Attempted,
} from './support/run-attacks.js';
import { until } from '../support/until.js';

/** Attacks on what was sent, or decided about, under a running worker. What stops an account has one of its own. */

const PER_ACCOUNT = 6;
const SHARED = Math.ceil(REVIVED.length / PER_ACCOUNT);
const ATTACKS = [...REVIVED, ...STOPPING];

let world: ForgingWorld;
let attempted: Attempted[];

beforeAll(async () => {
  world = await ForgingWorld.open(SHARED + STOPPING.length + 1, { failAddresses: failing() });
  attempted = [...plan(world, REVIVED, PER_ACCOUNT), ...plan(world, STOPPING, 1, SHARED)];
  world.sandbox.setFaults(faultsOf(attempted));
  await enqueueTargets(attempted);
  await world.startWorker();
  await untilReached(attempted);
  await carryOut(attempted);
  await enqueueHonest(world.accounts);
}, 120_000);

/** The addresses are known before the accounts are: see `plan`. */
function failing(): string[] {
  return REVIVED.flatMap(({ from }, index) => (from === 'failed' ? [`wallet-fails${index}`] : []));
}

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
    if (each.attack.expect !== 'stopped') return;
    const { account } = each.target;
    if (each.attack.reason === 'objection') {
      await until('it objects', async () => (await account.redis.hlen(account.keys.objections)) === 1);
    }
    expect((await account.payout('honest')).state).toBe('queued');
    expect(timesPaid(world, each.target)).toBe(1);
  },
);

it('nothing else was paid in any account', () => {
  for (const account of world.accounts) judgeBook(world, account);
});
