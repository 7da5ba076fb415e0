import { RedisUnavailableError } from '../../../../src/base/errors.js';
import { connectLedger } from '../../../world/links.js';
import { walletOf } from '../../../world/worker.js';
import { WorldProcess } from '../../../world/world.js';
import type { Simulation } from '../simulation.js';
import { SimConfirmer } from './confirmer.js';
import type { Replication } from './replication.js';

const BY = { by: 'bob', reason: 'fraud' };

/** A person cancels payouts, on either side of a cut. What was acknowledged is never paid. */
export function cancelSome({ world, redis, plan, pieces }: Simulation, replication: Replication) {
  const { random } = replication;
  let commands = 0;

  const cancel = async () => {
    const host = random.whole(0, 1);
    const { ledger } = replication.sideOf(host);
    const payoutId = ledger.idsIn('queued').at(-1);
    if (payoutId === undefined || replication.isLeaderless) return;
    const process = new WorldProcess({ world, name: `cancel#${(commands += 1)}` });
    const link = replication.linkOf(host, redis);
    const call = connectLedger({ process, redis: link, plan });
    const asks = pieces.commandAsks;
    const confirmer = new SimConfirmer({ process, host, replication, link, call, pieces, asks });
    const confirm = confirmer.prepare();
    const change = { payoutId, from: 'queued', to: 'cancelled', ...BY } as const;
    try {
      const rejection = await call('cancel', payoutId, async () => replication.sideOf(host).ledger.change(change));
      if (rejection !== undefined) return;
      await confirm();
      replication.acknowledged.add(walletOf(payoutId));
      world.note(() => `${process.name} ${payoutId} is cancelled for certain`);
      world.situations.meet('a command is acknowledged');
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      world.note(() => `${process.name} ${payoutId}: ${error.message}`);
    } finally {
      process.end();
    }
  };

  const again = () => {
    world.after(random.between(1_000, 20_000), () => {
      if (!world.faultsOn) return;
      if (world.mayFail && replication.isKnown && random.chance(0.4)) void cancel();
      again();
    });
  };
  again();
}
