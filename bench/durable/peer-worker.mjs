// A merchant's worker on one of the peers, with the project's own gateway client: only the engine differs.
// argv[2]: {peer, account, …} as JSON. Prints `ready`. SIGUSR2 says: stand still (SIGSTOP) before the next call, which the
// engine has begun by then. SIGTERM ends it in good order.
import { createGatewayClient } from '../../dist/index.js';

const { peer, account, ...settings } = JSON.parse(process.argv[2]);
const gateway = createGatewayClient(account);
let isArmed = false;
process.on('SIGUSR2', () => (isArmed = true));

const { work } = await import(`./peers/${peer}.mjs`);
const stop = await work(settings, async ({ paymentId, amount, addressTo }) => {
  if (isArmed) {
    isArmed = false;
    process.kill(process.pid, 'SIGSTOP');
  }
  const outcome = await gateway.withdraw({ paymentId, amount, addressTo });
  if (outcome.kind !== 'accepted') throw new Error(`the withdrawal was ${outcome.kind}`);
  return outcome.gatewayId;
});
process.on('SIGTERM', () => void stop().finally(() => process.exit()));
process.stdout.write('ready\n');
