import { serialize } from 'node:v8';
import type { LeaseView } from '../../src/ledger/sender-ledger.js';
import { type AccountRig, makeRig } from '../ledger/support/redis-rig.js';
import type { TestAccount } from '../ledger/support/test-account.js';
import { createWallClock } from '../ledger/support/wall-clock.js';
import type { RedisSnapshot } from './memory-redis.js';
import { setFields, WorldLedger } from './world-ledger.js';

export function makeWorldRig(): AccountRig<TestAccount & { readonly sender: WorldLedger }> {
  const clock = createWallClock();
  const sender = new WorldLedger({ clock });
  const { connection, payoutLedger } = sender;
  const { platformId, redis } = connection;
  return makeRig({
    ...{ platformId, redis, clock, connection, ledger: payoutLedger, sender },
    dump: async () => Promise.resolve({ all: serialize(sender.redis.dump()).toString('hex') }),
    close: async () => Promise.resolve(),
  });
}

export { countLedgers } from './world-ledger.js';

interface RigSnapshot extends RedisSnapshot {
  readonly lease: LeaseView | undefined;
  readonly sendCount: number;
  readonly last: string;
}

export class RigLedger extends WorldLedger {
  override snapshot(): RigSnapshot {
    return { ...super.snapshot(), lease: this.lease, sendCount: this.sendCount, last: this.ofSender('last') ?? '' };
  }

  override restore({ keys, lease, sendCount, last }: RigSnapshot) {
    super.restore({ keys });
    const { owner, epoch, heartbeat: beat, released } = lease ?? {};
    const held = { owner, epoch, beat, released: released === undefined ? undefined : Number(released) };
    const line = sendCount === 0 && last === '' ? {} : { sends: sendCount, last };
    setFields(this, this.connection.keys.sender, { ...held, ...line });
  }
}
