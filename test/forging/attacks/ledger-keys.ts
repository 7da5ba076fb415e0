import { again, type AccountAttack } from '../support/account-attack.js';

/** What the account itself keeps in Redis: lease, counters, ids, whole keys. */

/** Alters fields of one of the account's own hashes. */
function hashAttack(
  name: string,
  key: 'sender' | 'ledger',
  fields: Readonly<Record<string, string>>,
  expected: AccountAttack['expect'],
): AccountAttack {
  return { name, attack: async ({ account }) => account.redis.hset(account.keys[key], fields), expect: expected };
}

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
