// A process in which one peer paces the withdrawals of one account, all with the project's own gateway client: only the
// pacing differs.
import { systemClock } from '../../src/base/clock.js';
import { createGatewayClient, type GatewayClientOptions, silentLogger } from 'payout-queue';
import type { SamplePayout } from '../sample-payouts.js';
import { PEERS } from './peers.js';

/** What the parent asks for. */
export interface PeerRun {
  readonly name: string;
  readonly account: Pick<GatewayClientOptions, 'platformId' | 'secretKey' | 'baseUrl'>;
  readonly payouts: readonly SamplePayout[];
  readonly redisPort: number;
}

process.once('message', (asked: PeerRun) => void runPeer(asked));

async function runPeer({ name, account, payouts, redisPort }: PeerRun): Promise<void> {
  const client = createGatewayClient({ ...account, clock: systemClock, logger: silentLogger });
  const send = async ({ paymentId, amount, addressTo }: SamplePayout): Promise<void> => {
    const outcome = await client.withdraw({ paymentId, amount, addressTo });
    if (outcome.kind !== 'accepted') throw new Error(`${name}: the withdraw was ${outcome.kind}`);
  };
  await PEERS[name]?.(payouts, send, { host: '127.0.0.1', port: redisPort });
  process.exit();
}

// The benchmark was ended.
process.once('disconnect', () => process.exit());
