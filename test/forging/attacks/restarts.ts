import { restore, type KeyCopy } from '../support/copy-keys.js';
import type { ForgedAccount } from '../support/forged-account.js';
import type { Held } from '../support/outcome.js';

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

async function revive(account: ForgedAccount, _: KeyCopy, paid: KeyCopy): Promise<void> {
  await restore(account, paid);
  await account.revive('P');
}

/** Brings everything back as it was once paid, but the attempt. */
function reviveAs(attempt: string): RestartAttack['attack'] {
  return async (account, _, paid) => {
    await restore(account, paid);
    await account.revive('P', { attempt });
  };
}

export const RESTARTS: readonly RestartAttack[] = [
  {
    name: 'an old copy of everything after a flush',
    attack: async (account, old) => restore(account, old),
    expect: 'stopped',
  },
  {
    name: 'old records after a flush, the ledger begun again',
    attack: async (account, old) => {
      await restore(account, old, /:payout:/);
      await account.revive('P');
    },
    expect: 'stopped',
  },
  {
    name: 'an old record after a flush, in the newest ledger, with the attempt raised',
    attack: async (account, old, paid) => {
      await restore(account, paid);
      await account.redis.del(account.keys.payout('P'));
      await restore(account, old, /:payout:/);
      await account.revive('P', {
        attempt: '1',
        tokens: (await account.redis.hget(account.keys.sender, 'last')) ?? '',
      });
    },
    expect: SENT_BEFORE,
  },
  {
    name: 'a paid payout after the journal began a new file',
    rotations: 1,
    attack: revive,
    expect: SENT_BEFORE,
  },
  {
    name: 'a paid payout after the journal began four files',
    rotations: 4,
    attack: revive,
    expect: SENT_BEFORE,
  },
  {
    name: 'a paid payout after four files, attempt lowered',
    rotations: 4,
    attack: reviveAs('0'),
    expect: 'stopped',
  },
  {
    name: 'a paid payout after four files, attempt lowered below what any file names',
    rotations: 4,
    attack: reviveAs('-1'),
    expect: { held: 'fields', isTampering: true },
  },
  {
    name: 'a paid payout whose signature has expired',
    clock: 'expired',
    attack: revive,
    expect: { held: 'expired', isTampering: false },
  },
  {
    name: 'a paid payout whose signature has expired, with the clock set back',
    clock: 'expired, then set back',
    attack: revive,
    expect: SENT_BEFORE,
  },
];
