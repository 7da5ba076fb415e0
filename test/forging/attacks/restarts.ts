import type { Held } from '../support/attack.js';
import type { ForgedAccount, KeyCopy } from '../support/forged-account.js';

/** What is done between two runs of the worker, after a payout was paid. */
export interface RestartAttack {
  readonly name: string;
  /** While no worker runs; Redis is empty then, `old` is from before the send, `paid` from after it. */
  readonly attack: (account: ForgedAccount, old: KeyCopy, paid: KeyCopy) => Promise<unknown>;
  /** How often the journal begins a new file before. */
  readonly rotations?: number;
  /** How the clock stands when the second worker runs; @defaultValue the signature still counts */
  readonly clock?: 'expired' | 'expired, then set back';
  readonly expect: Held | 'stopped';
}

const SENT_BEFORE: Held = { held: 'sent_before', isTampering: true };

/** Brings everything back as it was once paid, but for a change. */
const revive =
  (change: Readonly<Record<string, string>> = {}): RestartAttack['attack'] =>
  async (account, _, paid) => {
    await account.restore(paid);
    await account.revive('P', change);
  };

export const RESTARTS: readonly RestartAttack[] = [
  {
    name: 'an old copy of everything after a flush',
    attack: async (account, old) => account.restore(old),
    expect: 'stopped',
  },
  {
    name: 'old records after a flush, the ledger begun again',
    attack: async (account, old) => {
      await account.restore(old, /:payout:/);
      await account.revive('P');
    },
    expect: 'stopped',
  },
  {
    name: 'an old record after a flush, in the newest ledger, with the attempt raised',
    attack: async (account, old, paid) => {
      await account.restore(paid);
      await account.redis.del(account.keys.payout('P'));
      await account.restore(old, /:payout:/);
      const tokens = (await account.redis.hget(account.keys.sender, 'last')) ?? '';
      await account.revive('P', { attempt: '1', tokens });
    },
    expect: SENT_BEFORE,
  },
  { name: 'a paid payout after the journal began a new file', rotations: 1, attack: revive(), expect: SENT_BEFORE },
  { name: 'a paid payout after the journal began four files', rotations: 4, attack: revive(), expect: SENT_BEFORE },
  {
    ...{ name: 'a paid payout after four files, attempt lowered', rotations: 4 },
    ...{ attack: revive({ attempt: '0' }), expect: 'stopped' },
  },
  {
    ...{ name: 'a paid payout after four files, attempt lowered below what any file names', rotations: 4 },
    ...{ attack: revive({ attempt: '-1' }), expect: { held: 'fields', isTampering: true } },
  },
  {
    ...{ name: 'a paid payout whose signature has expired', clock: 'expired' },
    ...{ attack: revive(), expect: { held: 'expired', isTampering: false } },
  },
  {
    ...{ name: 'a paid payout whose signature has expired, with the clock set back', clock: 'expired, then set back' },
    ...{ attack: revive(), expect: SENT_BEFORE },
  },
];

/** What retention has removed from the journal. */
export const FORGOTTEN = {
  name: 'a paid payout whose journal file retention has removed, with the clock set back to when its signature counted',
  held: 'forgotten',
} as const;
