// A merchant's worker on one of the peers, with the project's own gateway client: only the engine differs.
// argv[2]: {peer, account, …} as JSON. Prints `ready`. SIGUSR2 says: stand still (SIGSTOP) in the next call, which the
// engine has begun by then, before its connection is open. SIGTERM ends it in good order.
import { createGatewayClient } from '../../dist/index.js';

const { peer, account, ...settings } = JSON.parse(process.argv[2]);
const gateway = createGatewayClient(account);
let isArmed = false;
process.on('SIGUSR2', () => (isArmed = true));

const { work } = await import(`./peers/${peer}.mjs`);
const stop = await work(settings, withdraw);
process.on('SIGTERM', () => void stop().finally(() => process.exit()));
process.stdout.write('ready\n');

/** @param mayWrite - asked directly before the first byte */
async function withdraw({ paymentId, amount, addressTo }, mayWrite = () => true) {
  if (isArmed) {
    isArmed = false;
    process.kill(process.pid, 'SIGSTOP');
  }
  const connection = await gateway.openConnection(new AbortController().signal);
  const outcome = await connection.withdraw({ paymentId, amount, addressTo }, { mayWrite });
  if (outcome.kind === 'accepted') return outcome.gatewayId;
  throw Object.assign(new Error(`the withdrawal was ${outcome.kind}`), { isKnown: outcome.kind !== 'unknown' });
}
