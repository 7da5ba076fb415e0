import type { LedgerRig } from '../ledger/contract/ledger-rig.js';
import { makeRig } from '../ledger/support/redis-rig.js';
import { createWallClock } from '../ledger/support/wall-clock.js';
import type { LeaseView } from '../../src/ledger/sender-ledger.js';
import type { RedisSnapshot } from './memory-redis.js';
import { setFields } from './tamper.js';
import { WorldLedger } from './world-ledger.js';

export function makeWorldRig(
  nextLedgerId = countLedgers(),
  clock = createWallClock(),
): LedgerRig & { readonly ledger: WorldLedger } {
  const ledger = new WorldLedger({ clock, nextLedgerId });
  const { connection, payoutLedger } = ledger;
  return makeRig(
    {
      ...{ connection, clock, ledger: payoutLedger },
      dump: async () => Promise.resolve(ledger.redis.dump()),
      close: async () => Promise.resolve(),
    },
    ledger,
  );
}

export function countLedgers(): () => string {
  let count = 0;
  return () => `ledger-${(count += 1)}`;
}

interface RigSnapshot extends RedisSnapshot {
  readonly lease: LeaseView | undefined;
  readonly sendCount: number;
  readonly last: string;
}

export class RigLedger extends WorldLedger {
  override snapshot(): RigSnapshot {
    return { ...super.snapshot(), lease: this.lease, sendCount: this.sendCount, last: this.ofSender('last') ?? '' };
  }

  override restore({ keys, lease, sendCount, last }: RigSnapshot): void {
    super.restore({ keys });
    const { owner, epoch, heartbeat: beat, released } = lease ?? {};
    const held = { owner, epoch, beat, released: released === undefined ? undefined : Number(released) };
    const line = sendCount === 0 && last === '' ? {} : { sends: sendCount, last };
    setFields(this, this.connection.keys.sender, { ...held, ...line });
  }
}
