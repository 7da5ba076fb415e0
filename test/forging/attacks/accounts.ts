import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import type { Reason, Scene } from '../support/attack.js';
import { type ForgedAccount, type KeyCopy, signAct } from '../support/forged-account.js';

/** Attacks on a whole account: the breaker's pause, what the account itself keeps in Redis, and jobs. */
interface AccountAttack {
  readonly name: string;
  /** `continues`: what is signed is still paid, once; `stopped`: nothing more; `either`: as it comes, nothing forged. */
  readonly expect: 'continues' | 'stopped' | 'either';
  attack(scene: Scene): Promise<unknown>;
  readonly refusal?: 'sent_before' | 'resume' | undefined;
}

const row = (
  name: string,
  expect: AccountAttack['expect'],
  attack: AccountAttack['attack'],
  refusal?: AccountAttack['refusal'],
): AccountAttack => ({ name, expect, attack, refusal });

const repeated: NodeJS.Timeout[] = [];

/** Repeats something for as long as the suite lasts: what the worker puts right is spoilt again. */
function again(everyMs: number, what: () => Promise<unknown>) {
  repeated.push(setInterval(() => void what().catch(() => undefined), everyMs));
}

export function endRepeated() {
  for (const timer of repeated.splice(0)) clearInterval(timer);
}

/** How late a slow response is: long enough that Redis can be altered before it, also on a busy machine. */
const SLOW_MS = 4_000;

const untilIn = async ({ account }: Scene, payoutId: string, state: Parameters<typeof account.isIn>[0]) =>
  until(`${payoutId} is ${state}`, async () => account.isIn(state, payoutId));

async function sendTo({ world, account }: Scene, payoutId: string, ...kinds: ('block' | 'latency-after')[]) {
  const addresses = [`wallet-${payoutId}${account.platformId}`];
  for (const kind of kinds)
    world.sandbox.addFaults([{ kind, addresses, ...(kind === 'block' ? {} : { delayMs: SLOW_MS }) }]);
  await account.order(payoutId, '2');
  await account.ring(payoutId);
}

/** A payout that is being sent, and answered late; `block`: as for a blocked account. */
async function sendSlowly(scene: Scene, ...more: 'block'[]) {
  await sendTo(scene, 'slow', 'latency-after', ...more);
  await untilIn(scene, 'slow', 'sending');
}

/** Brings the breaker about: the gateway answers as for a blocked account. */
async function block(scene: Scene, payoutId = 'blocked') {
  const { redis, keys } = scene.account;
  await sendTo(scene, payoutId, 'block');
  await until('the breaker pauses', async () => (await redis.hexists(keys.ledger, 'pausedReason')) === 1);
  await delay(50);
}

async function removePause({ account: { redis, keys } }: Scene, resumeAct = '') {
  if (resumeAct !== '') await redis.hset(keys.ledger, { resumeAct });
  const counts = ['rejectionsInARow', 'payoutRejectionsInARow', 'unknownsInARow', 'pendingEvent'];
  await redis.hdel(keys.ledger, 'pausedReason', 'pausedBy', 'pausedAt', ...counts);
}

type Change = Partial<Parameters<typeof signAct>[1]>;
const resumeAct = ({ account }: Scene, change: Change = {}) =>
  signAct(account.platformId, { act: 'resume', ...change });

/** The worker says that the act does not end the breaker's pause. */
const removed = (name: string, attack: AccountAttack['attack']): AccountAttack =>
  row(`the breaker's ${name}`, 'stopped', attack, 'resume');

/** @param make - the act to resume that the attacker has, once there is a pause */
const resumed = (name: string, make: (scene: Scene) => string): AccountAttack =>
  removed(`pause removed, ${name}`, async (scene) => {
    await block(scene);
    await removePause(scene, make(scene));
  });

export const PAUSES: readonly AccountAttack[] = [
  resumed('with no act', () => ''),
  removed('pause removed, with an act of before', async (scene) => {
    const early = resumeAct(scene);
    await block(scene);
    await removePause(scene, early);
  }),
  resumed("with an act that a producer's key signed", (scene) => resumeAct(scene, { key: 'shop' })),
  row('a pause ended by the act that an operator signed for it', 'continues', async (scene) => {
    await block(scene);
    await removePause(scene, resumeAct(scene));
  }),
  removed('second pause removed, with the act that ended the first', async (scene) => {
    await block(scene);
    // The operator's clock is ahead: by its time alone the act would also end the second pause.
    await removePause(scene, resumeAct(scene, { days: [0.003, 1] }));
    await block(scene, 'again');
    await removePause(scene);
  }),
  row('a pause of the attacker while the blocking response comes, then removed', 'stopped', async (scene) => {
    const { redis, keys } = scene.account;
    await sendSlowly(scene, 'block');
    await redis.hset(keys.ledger, { pausedReason: 'forged' });
    await untilIn(scene, 'slow', 'rejected');
    await removePause(scene);
  }),
  row("the breaker's mark that it counted this outcome forged while the response comes", 'stopped', async (scene) => {
    const { redis, keys } = scene.account;
    await sendSlowly(scene, 'block');
    await redis.hset(keys.ledger, { counted: `${(await redis.hget(keys.sender, 'last')) ?? ''} rejected` });
    await untilIn(scene, 'slow', 'rejected');
  }),
];

const set = (
  key: 'sender' | 'ledger',
  fields: Readonly<Record<string, string>>,
  expect: AccountAttack['expect'],
): AccountAttack =>
  row(`${key} set to ${JSON.stringify(fields)}`, expect, async ({ account }) =>
    account.redis.hset(account.keys[key], fields),
  );

export const LEDGERS: readonly AccountAttack[] = [
  set('sender', { owner: 'thief', epoch: '2' }, 'continues'),
  set('sender', { released: '1' }, 'continues'),
  set('sender', { epoch: '0' }, 'stopped'),
  set('sender', { beat: '99999' }, 'either'),
  set('sender', { sends: '0' }, 'stopped'),
  set('sender', { last: 'AAAAAAAA' }, 'stopped'),
  set('ledger', { id: '00000000-0000-4000-8000-000000000000' }, 'stopped'),
  set('ledger', { format: '1' }, 'continues'),
  set('ledger', { pausedReason: 'forged' }, 'stopped'),
  row('the sender key deleted', 'stopped', async ({ account }) => account.redis.del(account.keys.sender)),
  // An objection stands in Redis only. The journal still knows what was sent.
  row('ledger id replaced, objections deleted again and again', 'either', async ({ account: { redis, keys } }) => {
    await redis.hset(keys.ledger, { id: '00000000-0000-4000-8000-000000000001' });
    again(20, async () => redis.del(keys.objections));
  }),
  row('count of sends and attempt of a paid payout lowered, objections deleted', 'stopped', async ({ account }) => {
    await account.redis.hset(account.keys.sender, { sends: '0', last: '' });
    await account.revive('first', { attempt: '0' });
    again(20, async () => account.redis.del(account.keys.objections));
  }),
  row('what the ledger knows of journals forged', 'either', async ({ account: { redis, keys } }) => {
    const [journalId = ''] = await redis.hkeys(keys.journals);
    const forged = JSON.stringify({ host: 'thief', dir: '/thief', sends: 99, at: Date.now() });
    await redis.hset(keys.journals, { [journalId]: forged, other: forged });
  }),
  row('all keys replaced by those of another account', 'stopped', async ({ world, account }) => {
    const { redis, keys } = account;
    const other = world.account(world.accounts.length - 1);
    const theirs = [...(await other.copyKeys())];
    await redis.del(...(await redis.keys(`${keys.prefix}:*`)));
    await account.restore(
      new Map(theirs.map(([name, value]) => [name.replace(other.keys.prefix, keys.prefix), value])),
    );
    await account.ring('first');
  }),
];

export const JOBS: readonly AccountAttack[] = [
  row('address altered and put back while payouts wait for their slot', 'either', async ({ account }) => {
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
  }),
  row('jobs for payouts that are not there, or are no payoutId', 'continues', async ({ account }) => {
    for (const id of ['nobody', 'a:b', '', 7, null, { a: 1 }, ['first'], 'first\n']) await account.ring(id);
  }),
  row('job with the data of another payment', 'continues', async ({ account }) => {
    await account.order('job');
    await account.ring('job', { paymentId: 6, amount: '999', addressTo: 'wallet-thief', gatewayId: 'forged' });
  }),
  row('ten jobs for one queued payout, the limiter deleted again and again', 'continues', async ({ account }) => {
    const limiters = ['limit', 'limiter'].map((name) => `${account.keys.prefix}:withdraw:${name}`);
    again(10, async () => account.redis.del(...limiters));
    for (const id of ['one', 'two', 'three']) {
      await account.order(id);
      for (let count = 0; count < 10; count += 1) await account.ring(id);
    }
  }),
  row('sending set back to queued while the response comes', 'continues', async (scene) => {
    await sendSlowly(scene);
    await scene.account.revive('slow');
  }),
  row('sending set back to queued while the response comes, attempt lowered', 'stopped', async (scene) => {
    const { account } = scene;
    await sendSlowly(scene);
    await account.revive('slow', { attempt: '0' });
    await account.unset('slow', 'tokens');
    // What is enqueued behind it before the response comes is sent as signed.
    await until('the worker objects', async () => (await account.redis.exists(account.keys.objections)) === 1);
  }),
  row(
    'in_progress set back to queued',
    'continues',
    async (scene) => {
      const { account, world } = scene;
      const addresses = [`wallet-slow${account.platformId}`];
      world.sandbox.addFaults([{ kind: 'drop-before', endpoint: 'transactionstatus', addresses }]);
      await account.order('slow', '2');
      await untilIn(scene, 'slow', 'in_progress');
      await account.revive('slow');
      await untilIn(scene, 'slow', 'held');
    },
    'sent_before',
  ),
];

/** What is done between two runs of the worker, after a payout was paid. */
interface RestartAttack {
  readonly name: string;
  readonly expect: Reason | 'stopped';
  /** While no worker runs; Redis is empty then, `old` is from before the send, `paid` from after it. */
  readonly attack: (account: ForgedAccount, old: KeyCopy, paid: KeyCopy) => Promise<unknown>;
  readonly rotations?: number;
  /** How the clock stands when the second worker runs; @defaultValue the signature still counts */
  readonly clock?: 'expired' | 'expired, then set back';
}

type More = Pick<RestartAttack, 'rotations' | 'clock'>;

/** Brings everything back as it was once paid, but for a change. */
const revived = (
  name: string,
  expect: RestartAttack['expect'],
  more: More,
  change: Readonly<Record<string, string>> = {},
): RestartAttack => ({
  ...{ name: `a paid payout ${name}`, expect, ...more },
  attack: async (account, _, paid) => {
    await account.restore(paid);
    await account.revive('P', change);
  },
});

export const RESTARTS: readonly RestartAttack[] = [
  {
    ...{ name: 'an old copy of everything after a flush', expect: 'stopped' },
    attack: async (account, old) => account.restore(old),
  },
  {
    ...{ name: 'old records after a flush, the ledger begun again', expect: 'stopped' },
    attack: async (account, old) => {
      await account.restore(old, /:payout:/);
      await account.revive('P');
    },
  },
  {
    ...{ name: 'an old record after a flush, in the newest ledger, with the attempt raised', expect: 'sent_before' },
    attack: async (account, old, paid) => {
      await account.restore(paid);
      await account.redis.del(account.keys.payout('P'));
      await account.restore(old, /:payout:/);
      const tokens = (await account.redis.hget(account.keys.sender, 'last')) ?? '';
      await account.revive('P', { attempt: '1', tokens });
    },
  },
  revived('after the journal began four files', 'sent_before', { rotations: 4 }),
  revived('after four files, attempt lowered', 'stopped', { rotations: 4 }, { attempt: '0' }),
  revived('whose signature has expired', 'expired', { clock: 'expired' }),
  revived('whose signature has expired, clock set back', 'sent_before', { clock: 'expired, then set back' }),
];

/** Replies of an honest Redis, altered on the way to the worker. */
interface MiddleAttack {
  readonly name: string;
  /** Whether the payout was paid before; else it is queued, and held for its signature. */
  readonly isPaid: boolean;
  readonly alter: (reply: string) => string;
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;
const told = (name: string, from: string, to: string) => (reply: string) =>
  reply.replaceAll(bulk(name) + bulk(from), bulk(name) + bulk(to));
const toldAgain = (reply: string) => told('attempt', '1', '0')(told('state', 'completed', 'queued')(reply));

export const MIDDLE: readonly MiddleAttack[] = [
  { name: 'amount replaced', isPaid: false, alter: told('amount', '12.5', '99.5') },
  { name: 'state completed told as queued, attempt as 0', isPaid: true, alter: toldAgain },
];
