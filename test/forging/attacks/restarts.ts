import type { Reason } from '../support/attack.js';
import type { ForgedAccount, KeyCopy } from '../support/forged-account.js';

/** What is done between two runs of the worker, after a payout was paid. */
export interface RestartAttack {
  readonly name: string;
  readonly expect: Reason | 'stopped';
  /** While no worker runs; Redis is empty then, `old` is from before the send, `paid` from after it. */
  readonly attack: (account: ForgedAccount, old: KeyCopy, paid: KeyCopy) => Promise<unknown>;
  /** How often the journal begins a new file before. */
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
