import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { sendTo, type AccountAttack, type Scene } from '../support/account-attack.js';
import { signAct, DAY_MS } from '../support/signers.js';

/** The breaker's pause, removed from Redis or kept from coming about. */

/** Brings the breaker about: the gateway answers as for a blocked account. */
async function block({ world, account }: Scene, payoutId: string): Promise<void> {
  await sendTo({ world, account }, payoutId, 'block');
  await until(
    'the breaker pauses',
    async () => (await account.redis.hexists(account.keys.ledger, 'pausedReason')) === 1,
  );
}

const UNPAUSED = [
  'pausedReason',
  'pausedBy',
  'pausedAt',
  'rejectionsInARow',
  'payoutRejectionsInARow',
  'unknownsInARow',
  'untold',
];

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
      scene.world.sandbox.addFaults([{ kind: 'block', addresses: [`wallet-blocked${account.platformId}`] }]);
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
      scene.world.sandbox.addFaults([{ kind: 'block', addresses: [`wallet-blocked${account.platformId}`] }]);
      await until('it is being sent', async () => (await account.payout('blocked')).state === 'sending');
      const token = (await account.redis.hget(account.keys.sender, 'last')) ?? '';
      await account.redis.hset(account.keys.ledger, { counted: `${token} rejected` });
      await until('it is rejected', async () => (await account.payout('blocked')).state === 'rejected');
    },
    expect: 'stopped',
  },
];
