import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { time, type AccountAttack, type Scene } from '../support/attack.js';
import { DAY_MS, signAct } from '../support/signers.js';

/** Attacks on a whole account: the breaker's pause, what the account itself keeps in Redis, and jobs. */

const repeated: NodeJS.Timeout[] = [];

/** Repeats something for as long as the suite lasts: what the worker puts right is spoilt again. */
function again(everyMs: number, what: () => Promise<unknown>): void {
  repeated.push(setInterval(() => void what().catch(() => undefined), everyMs));
}

/** Ends what attackers repeat. */
export function endRepeated(): void {
  for (const timer of repeated.splice(0)) clearInterval(timer);
}

/** How late a slow response is: long enough that Redis can be altered before it, also on a busy machine. */
const SLOW_MS = 4_000;

/** A payout that the gateway answers late, or as for a blocked account. */
async function sendTo({ world, account }: Scene, payoutId: string, kind: 'block' | 'latency-after'): Promise<void> {
  const addresses = [`wallet-${payoutId}${account.platformId}`];
  world.sandbox.addFaults([{ kind, addresses, ...(kind === 'block' ? {} : { delayMs: SLOW_MS }) }]);
  await account.order(payoutId, '2');
  await account.ring(payoutId);
}

const untilIn = async (
  { account }: Scene,
  payoutId: string,
  state: Parameters<typeof account.isIn>[0],
): Promise<void> => until(`${payoutId} is ${state}`, async () => account.isIn(state, payoutId));

/** A payout that is being sent, and answered late. */
async function sendSlowly(scene: Scene, payoutId = 'slow'): Promise<void> {
  await sendTo(scene, payoutId, 'latency-after');
  await untilIn(scene, payoutId, 'sending');
}

/** Brings the breaker about: the gateway answers as for a blocked account. */
async function block(scene: Scene, payoutId = 'blocked'): Promise<void> {
  const { redis, keys } = scene.account;
  await sendTo(scene, payoutId, 'block');
  await until('the breaker pauses', async () => (await redis.hexists(keys.ledger, 'pausedReason')) === 1);
  await delay(50);
}

async function removePause({ account: { redis, keys } }: Scene, resumeAct = ''): Promise<void> {
  if (resumeAct !== '') await redis.hset(keys.ledger, { resumeAct });
  const counts = ['rejectionsInARow', 'payoutRejectionsInARow', 'unknownsInARow', 'untold'];
  await redis.hdel(keys.ledger, 'pausedReason', 'pausedBy', 'pausedAt', ...counts);
}

/** @param change - of an act to resume, which the attacker has; undefined is none */
function resumed(name: string, change?: Partial<Parameters<typeof signAct>[1]>, platforms = 0): AccountAttack {
  const act = ({ account }: Scene): string =>
    change === undefined ? '' : signAct(account.platformId + platforms, { act: 'resume', ...change });
  return {
    name: `the breaker's pause removed${name}`,
    attack: async (scene) => {
      const early = act(scene);
      await block(scene);
      await removePause(scene, name.includes('before') ? early : act(scene));
    },
    ...{ expect: 'stopped', refusal: 'resume' },
  };
}

export const PAUSES: readonly AccountAttack[] = [
  resumed(''),
  resumed(', with an act of before', {}),
  resumed(", with a producer's act", { key: 'shop' }),
  resumed(", with another account's act", {}, 1),
  resumed(', with an act to resend', { act: 'resend', payoutId: 'first', attempt: 1 }),
  resumed(', with an act for too long', { expiresAt: time(30 * DAY_MS) }),
  {
    name: 'a pause ended by the act that an operator signed for it',
    attack: async (scene) => {
      await block(scene);
      await removePause(scene, signAct(scene.account.platformId, { act: 'resume' }));
    },
    expect: 'continues',
  },
  {
    name: "the breaker's second pause removed, with the act that ended the first",
    attack: async (scene) => {
      await block(scene);
      // The operator's clock is ahead: by its time alone the act would also end the second pause.
      const times = { at: time(200_000), expiresAt: time(DAY_MS) };
      await removePause(scene, signAct(scene.account.platformId, { act: 'resume', ...times }));
      await block(scene, 'again');
      await removePause(scene);
    },
    ...{ expect: 'stopped', refusal: 'resume' },
  },
  {
    name: 'a pause of the attacker while the blocking response comes, then removed',
    attack: async (scene) => {
      const { account, world } = scene;
      await sendTo(scene, 'blocked', 'latency-after');
      world.sandbox.addFaults([{ kind: 'block', addresses: [`wallet-blocked${account.platformId}`] }]);
      await untilIn(scene, 'blocked', 'sending');
      await account.redis.hset(account.keys.ledger, { pausedReason: 'forged' });
      await untilIn(scene, 'blocked', 'rejected');
      await removePause(scene);
    },
    expect: 'stopped',
  },
  {
    name: "the breaker's mark that it counted this outcome forged while the response comes",
    attack: async (scene) => {
      const { account, world } = scene;
      await sendTo(scene, 'blocked', 'latency-after');
      world.sandbox.addFaults([{ kind: 'block', addresses: [`wallet-blocked${account.platformId}`] }]);
      await untilIn(scene, 'blocked', 'sending');
      const token = (await account.redis.hget(account.keys.sender, 'last')) ?? '';
      await account.redis.hset(account.keys.ledger, { counted: `${token} rejected` });
      await untilIn(scene, 'blocked', 'rejected');
    },
    expect: 'stopped',
  },
];

/** Alters fields of one of the account's own hashes. */
const hashAttack = (
  name: string,
  key: 'sender' | 'ledger',
  fields: Readonly<Record<string, string>>,
  expected: AccountAttack['expect'],
): AccountAttack => ({
  name,
  attack: async ({ account }) => account.redis.hset(account.keys[key], fields),
  expect: expected,
});

export const LEDGERS: readonly AccountAttack[] = [
  hashAttack('lease owner and epoch forged', 'sender', { owner: 'thief', epoch: '2' }, 'continues'),
  hashAttack('lease marked as given back', 'sender', { released: '1' }, 'continues'),
  hashAttack('epoch lowered', 'sender', { epoch: '0' }, 'stopped'),
  hashAttack('heartbeat raised', 'sender', { beat: '99999' }, 'either'),
  hashAttack('count of sends lowered', 'sender', { sends: '0' }, 'stopped'),
  hashAttack('count of sends raised', 'sender', { sends: '9' }, 'stopped'),
  hashAttack('token of the last send replaced', 'sender', { last: 'AAAAAAAA' }, 'stopped'),
  hashAttack('ledger id replaced', 'ledger', { id: '00000000-0000-4000-8000-000000000000' }, 'stopped'),
  hashAttack('format lowered', 'ledger', { format: '1' }, 'continues'),
  hashAttack('format raised', 'ledger', { format: '99' }, 'stopped'),
  hashAttack('paused in Redis', 'ledger', { pausedReason: 'forged' }, 'stopped'),
  {
    name: 'ledger id replaced, objections deleted again and again',
    attack: async ({ account: { redis, keys } }) => {
      await redis.hset(keys.ledger, { id: '00000000-0000-4000-8000-000000000001' });
      again(20, async () => redis.del(keys.objections));
    },
    // An objection stands in Redis only. The journal still knows what was sent.
    expect: 'either',
  },
  {
    name: 'count of sends lowered, objections deleted, paid payout set back with attempt lowered',
    attack: async ({ account }) => {
      await account.redis.hset(account.keys.sender, { sends: '0', last: '' });
      await account.revive('first', { attempt: '0' });
      again(20, async () => account.redis.del(account.keys.objections));
    },
    expect: 'stopped',
  },
  {
    name: 'the sender key deleted',
    attack: async ({ account }) => account.redis.del(account.keys.sender),
    expect: 'stopped',
  },
  {
    name: 'what the ledger knows of journals forged',
    attack: async ({ account: { redis, keys } }) => {
      const [journalId = ''] = await redis.hkeys(keys.journals);
      const forged = JSON.stringify({ host: 'thief', dir: '/thief', sends: 99, at: Date.now() });
      await redis.hset(keys.journals, { [journalId]: forged, other: forged });
    },
    expect: 'either',
  },
  {
    name: 'all keys replaced by those of another account',
    attack: async ({ account, other }) => {
      const { redis, keys } = account;
      const names = await redis.keys(`${other.keys.prefix}:*`);
      await redis.del(...(await redis.keys(`${keys.prefix}:*`)));
      for (const name of names) {
        // A worker that runs may have removed one of BullMQ's keys meanwhile.
        await redis.rename(name, name.replace(other.keys.prefix, keys.prefix)).catch((error: unknown) => {
          if (!(error as Error).message.includes('no such key')) throw error;
        });
      }
      await account.ring('first');
    },
    expect: 'stopped',
  },
];

export const JOBS: readonly AccountAttack[] = [
  {
    name: 'address altered and put back all the while that payouts wait for their slot',
    attack: async ({ account }) => {
      const addresses = new Map<string, string>();
      for (const id of ['one', 'two', 'three', 'four', 'five', 'six', 'seven']) {
        addresses.set(id, await account.order(id));
      }
      let turn = 0;
      again(7, async () => {
        turn += 1;
        for (const [id, address] of addresses) {
          if ((await account.redis.hget(account.keys.payout(id), 'state')) !== 'queued') continue;
          await account.set(id, { addressTo: turn % 2 === 0 ? 'wallet-thief' : address });
        }
      });
    },
    expect: 'either',
  },
  {
    name: 'jobs for a payout that was paid',
    attack: async ({ account }) => {
      for (let count = 0; count < 5; count += 1) await account.ring('first');
    },
    expect: 'continues',
  },
  {
    name: 'jobs for payouts that are not there, or are no payoutId',
    attack: async ({ account }) => {
      for (const id of ['nobody', 'a:b', '', 7, null, { a: 1 }, ['first'], 'first\n']) await account.ring(id);
    },
    expect: 'continues',
  },
  {
    name: 'job with the data of another payment',
    attack: async ({ account }) => {
      await account.order('job');
      await account.ring('job', { paymentId: 6, amount: '999', addressTo: 'wallet-thief', txhash: 'forged' });
    },
    expect: 'continues',
  },
  {
    name: 'ten jobs for one queued payout, and the limiter deleted again and again',
    attack: async ({ account }) => {
      const limiters = ['limit', 'limiter'].map((name) => `${account.keys.prefix}:withdraw:${name}`);
      again(10, async () => account.redis.del(...limiters));
      for (const id of ['one', 'two', 'three']) {
        await account.order(id);
        for (let count = 0; count < 10; count += 1) await account.ring(id);
      }
    },
    expect: 'continues',
  },
  {
    name: 'sending set back to queued while the response comes',
    attack: async (scene) => {
      await sendSlowly(scene);
      await scene.account.revive('slow');
    },
    expect: 'continues',
  },
  {
    name: 'sending set back to queued while the response comes, attempt lowered',
    attack: async (scene) => {
      const { account } = scene;
      await sendSlowly(scene);
      await account.revive('slow', { attempt: '0' });
      await account.unset('slow', 'tokens');
      // What is enqueued behind it before the response comes is sent as signed.
      await until('the worker objects', async () => (await account.redis.exists(account.keys.objections)) === 1);
    },
    expect: 'stopped',
  },
  {
    name: 'in_progress set back to queued',
    attack: async (scene) => {
      const { account, world } = scene;
      const addresses = [`wallet-slow${account.platformId}`];
      world.sandbox.addFaults([{ kind: 'drop-before', endpoint: 'transactionstatus', addresses }]);
      await account.order('slow', '2');
      await untilIn(scene, 'slow', 'in_progress');
      await account.revive('slow');
      await untilIn(scene, 'slow', 'held');
    },
    ...{ expect: 'continues', refusal: 'sent_before' },
  },
];
