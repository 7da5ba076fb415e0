import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import type { ForgedAccount } from '../support/forged-account.js';
import type { ForgingWorld } from '../support/forging-world.js';
import { signAct, DAY_MS } from '../support/signers.js';

/** Where an attack on a whole account takes place. Its payout `first` was paid before, `after` is enqueued behind it. */
export interface Scene {
  readonly world: ForgingWorld;
  readonly account: ForgedAccount;
  readonly other: ForgedAccount;
}

export interface AccountAttack {
  readonly name: string;
  attack(scene: Scene): Promise<unknown>;
  /** `continues`: what is signed is still paid, once; `stopped`: nothing more; `either`: as it comes, nothing forged is paid. */
  readonly expect: 'continues' | 'stopped' | 'either';
  /** What the worker says of a signature, where it does. */
  readonly refusal?: string;
}

/** Alters fields of one of the account's own hashes. */
function hashAttack(
  name: string,
  key: 'sender' | 'ledger',
  fields: Readonly<Record<string, string>>,
  expected: AccountAttack['expect'],
): AccountAttack {
  return { name, attack: async ({ account }) => account.redis.hset(account.keys[key], fields), expect: expected };
}

/** Repeats something for as long as the suite lasts: what the worker puts right is spoilt again. */
function again(everyMs: number, what: () => Promise<unknown>): void {
  repeated.push(setInterval(() => void what().catch(() => undefined), everyMs));
}

const repeated: NodeJS.Timeout[] = [];

/** Ends what attackers repeat. */
export function endRepeated(): void {
  for (const timer of repeated.splice(0)) clearInterval(timer);
}

/** Brings the breaker about: the gateway answers as for a blocked account. */
async function block({ world, account }: Scene, payoutId: string): Promise<void> {
  await sendTo({ world, account }, payoutId, 'block');
  await until(
    'the breaker pauses',
    async () => (await account.redis.hexists(account.keys.ledger, 'pausedReason')) === 1,
  );
}

/** How late a slow response is: long enough that Redis can be altered before it, also on a busy machine. */
const SLOW_MS = 4_000;

async function sendTo(
  { world, account }: Pick<Scene, 'world' | 'account'>,
  payoutId: string,
  kind: 'block' | 'latency-after',
): Promise<void> {
  const addressTo = `bc1q${payoutId}${account.platformId}`;
  const delayMs = kind === 'block' ? {} : { delayMs: SLOW_MS };
  world.sandbox.addFaults([{ kind, addresses: [addressTo], ...delayMs }]);
  await account.enqueue({ payoutId, paymentId: 6, amount: '2', addressTo });
  await account.ring(payoutId);
}

const UNPAUSED = ['pausedReason', 'pausedBy', 'pausedAt', 'rejectionsInARow', 'unknownsInARow', 'untold'];

async function removePause({ account }: Scene): Promise<void> {
  await account.redis.hdel(account.keys.ledger, ...UNPAUSED);
}

function resumed(name: string, act: (scene: Scene) => string | Promise<string>): AccountAttack {
  return {
    name,
    attack: async (scene) => {
      const early = await act(scene);
      await block(scene, 'blocked');
      await delay(50);
      const late = early === '' ? '' : name.includes('before') ? early : await act(scene);
      if (late !== '') await scene.account.redis.hset(scene.account.keys.ledger, { resumeAct: late });
      await removePause(scene);
    },
    ...{ expect: 'stopped', refusal: 'resume' },
  };
}

const resume = { act: 'resume' } as const;
const time = (offsetMs: number): string => new Date(Date.now() + offsetMs).toISOString();

export const PAUSES: readonly AccountAttack[] = [
  resumed("the breaker's pause removed", () => ''),
  resumed("the breaker's pause removed, with an act of before", ({ account }) => signAct(account.platformId, resume)),
  resumed("the breaker's pause removed, with a producer's act", ({ account }) =>
    signAct(account.platformId, { ...resume, key: 'shop' }),
  ),
  resumed("the breaker's pause removed, with another account's act", ({ account }) =>
    signAct(account.platformId + 1, resume),
  ),
  resumed("the breaker's pause removed, with an act to resend", ({ account }) =>
    signAct(account.platformId, { act: 'resend', payoutId: 'first', attempt: 1 }),
  ),
  resumed("the breaker's pause removed, with an act for too long", ({ account }) =>
    signAct(account.platformId, { ...resume, expiresAt: time(30 * DAY_MS) }),
  ),
  {
    name: 'a pause ended by the act that an operator signed for it',
    attack: async (scene) => {
      await block(scene, 'blocked');
      await delay(50);
      await scene.account.redis.hset(scene.account.keys.ledger, {
        resumeAct: signAct(scene.account.platformId, resume),
      });
      await removePause(scene);
    },
    expect: 'continues',
  },
  {
    name: "the breaker's second pause removed, with the act that ended the first",
    attack: async (scene) => {
      const { account } = scene;
      await block(scene, 'blocked');
      await delay(50);
      // The operator's clock is ahead: by its time alone the act would also end the second pause.
      const act = signAct(account.platformId, { ...resume, at: time(200_000), expiresAt: time(DAY_MS) });
      await account.redis.hset(account.keys.ledger, { resumeAct: act });
      await removePause(scene);
      await block(scene, 'again');
      await delay(50);
      await removePause(scene);
    },
    ...{ expect: 'stopped', refusal: 'resume' },
  },
  {
    name: 'a pause of the attacker while the blocking response comes, then removed',
    attack: async (scene) => {
      const { account } = scene;
      await sendTo(scene, 'blocked', 'latency-after');
      scene.world.sandbox.addFaults([{ kind: 'block', addresses: [`bc1qblocked${account.platformId}`] }]);
      await until('it is being sent', async () => (await account.payout('blocked')).state === 'sending');
      await account.redis.hset(account.keys.ledger, { pausedReason: 'forged' });
      await until('it is rejected', async () => (await account.payout('blocked')).state === 'rejected');
      await removePause(scene);
    },
    expect: 'stopped',
  },
  {
    name: "the breaker's mark that it counted this outcome forged while the response comes",
    attack: async (scene) => {
      const { account } = scene;
      await sendTo(scene, 'blocked', 'latency-after');
      scene.world.sandbox.addFaults([{ kind: 'block', addresses: [`bc1qblocked${account.platformId}`] }]);
      await until('it is being sent', async () => (await account.payout('blocked')).state === 'sending');
      const token = (await account.redis.hget(account.keys.sender, 'last')) ?? '';
      await account.redis.hset(account.keys.ledger, { counted: `${token} rejected` });
      await until('it is rejected', async () => (await account.payout('blocked')).state === 'rejected');
    },
    expect: 'stopped',
  },
];

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
    attack: async ({ account }) => {
      await account.redis.hset(account.keys.ledger, { id: '00000000-0000-4000-8000-000000000001' });
      again(20, async () => account.redis.del(account.keys.objections));
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
    attack: async ({ account }) => {
      const [journalId = ''] = await account.redis.hkeys(account.keys.journals);
      const forged = { host: 'thief', dir: '/thief', sends: 99, at: Date.now() };
      await account.redis.hset(account.keys.journals, {
        [journalId]: JSON.stringify(forged),
        other: JSON.stringify(forged),
      });
    },
    expect: 'either',
  },
  {
    name: 'all keys replaced by those of another account',
    attack: async ({ account, other }) => {
      const names = await account.redis.keys(`${other.keys.prefix}:*`);
      await account.redis.del(...(await account.redis.keys(`${account.keys.prefix}:*`)));
      for (const name of names) {
        // A worker that runs may have removed one of BullMQ's keys meanwhile.
        await account.redis
          .rename(name, name.replace(other.keys.prefix, account.keys.prefix))
          .catch((error: unknown) => {
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
      const ids = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];
      const address = (id: string): string => `bc1q${id}${account.platformId}`;
      for (const payoutId of ids) {
        await account.enqueue({ payoutId, paymentId: 6, amount: '3', addressTo: address(payoutId) });
      }
      let turn = 0;
      again(7, async () => {
        turn += 1;
        for (const id of ids) {
          if ((await account.redis.hget(account.keys.payout(id), 'state')) !== 'queued') continue;
          await account.set(id, { addressTo: turn % 2 === 0 ? 'bc1qthief' : address(id) });
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
      await account.enqueue({ payoutId: 'job', paymentId: 6, amount: '3', addressTo: `bc1qjob${account.platformId}` });
      await account.ring('job', { paymentId: 6, amount: '999', addressTo: 'bc1qthief', txhash: 'forged' });
    },
    expect: 'continues',
  },
  {
    name: 'ten jobs for one queued payout, and the limiter deleted again and again',
    attack: async ({ account }) => {
      const names = ['limit', 'limiter', 'meta', 'marker'].map((name) => `${account.keys.prefix}:withdraw:${name}`);
      again(10, async () => account.redis.del(...names.slice(0, 2)));
      for (const id of ['one', 'two', 'three']) {
        await account.enqueue({ payoutId: id, paymentId: 6, amount: '3', addressTo: `bc1q${id}${account.platformId}` });
        for (let count = 0; count < 10; count += 1) await account.ring(id);
      }
    },
    expect: 'continues',
  },
  {
    name: 'sending set back to queued while the response comes',
    attack: async (scene) => {
      const { account } = scene;
      await sendTo(scene, 'slow', 'latency-after');
      await until('it is being sent', async () => (await account.payout('slow')).state === 'sending');
      await account.revive('slow');
    },
    expect: 'continues',
  },
  {
    name: 'sending set back to queued while the response comes, attempt lowered',
    attack: async (scene) => {
      const { account } = scene;
      await sendTo(scene, 'slow', 'latency-after');
      await until('it is being sent', async () => (await account.payout('slow')).state === 'sending');
      await account.revive('slow', { attempt: '0' });
      await account.unset('slow', 'tokens');
      // What is enqueued behind it before the response comes is sent as signed.
      await until('the worker objects', async () => (await account.redis.exists(account.keys.objections)) === 1);
    },
    expect: 'stopped',
  },
  {
    name: 'in_progress set back to queued',
    attack: async ({ world, account }) => {
      const addressTo = `bc1qslow${account.platformId}`;
      world.sandbox.addFaults([{ kind: 'drop-before', endpoint: 'transactionstatus', addresses: [addressTo] }]);
      await account.enqueue({ payoutId: 'slow', paymentId: 6, amount: '2', addressTo });
      await until('it is in progress', async () => (await account.payout('slow')).state === 'in_progress');
      await account.revive('slow');
      await until('it is held', async () => (await account.payout('slow')).state === 'held');
    },
    ...{ expect: 'continues', refusal: 'sent_before' },
  },
];
