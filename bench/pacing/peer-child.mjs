// A process in which one peer paces the withdrawals of one account, all with the project's own gateway client: only the
// pacing differs.
import { systemClock } from '../../dist/base/clock.js';
import { createGatewayClient, silentLogger } from '../../dist/index.js';
import { PEERS } from './peers.mjs';

process.once('message', async ({ name, account, payouts, redisPort }) => {
  const client = createGatewayClient({ ...account, clock: systemClock, logger: silentLogger });
  const send = async ({ paymentId, amount, addressTo }) => {
    const outcome = await client.withdraw({ paymentId, amount, addressTo });
    if (outcome.kind !== 'accepted') throw new Error(`${name}: the withdraw was ${outcome.kind}`);
  };
  await PEERS[name](payouts, send, { host: '127.0.0.1', port: redisPort });
  process.exit();
});

// The benchmark was ended.
process.once('disconnect', () => process.exit());
