/**
 * Asks the gateway for its currencies, the balance, and the wallet for a deposit. None of these moves money, so none
 * needs the queue, its pace or Redis.
 *
 *     GATEWAY_BASE_URL=https://gateway.example GATEWAY_SECRET_KEY=… npx tsx examples/gateway.ts 6 deposit-17
 */
import { createGatewayClient, GatewayRejectedError, GatewayUnavailableError } from 'payout-queue';

const {
  GATEWAY_BASE_URL: baseUrl = 'http://127.0.0.1:8080',
  GATEWAY_PLATFORM_ID: platformId = '4242',
  GATEWAY_SECRET_KEY: secretKey = '',
} = process.env;
const [paymentId = '6', orderId = 'deposit-17'] = process.argv.slice(2);

const gateway = createGatewayClient({ baseUrl, platformId: Number(platformId), secretKey });

try {
  // Every field as it came.
  for (const currency of await gateway.currencies()) process.stdout.write(`${JSON.stringify(currency)}\n`);
  process.stdout.write(`balance: ${JSON.stringify(await gateway.balance())}\n`);

  // The orderId is your own name for the deposit.
  const wallet = await gateway.getPaymentWallet({ paymentId: Number(paymentId), orderId });
  process.stdout.write(`${orderId}: ${JSON.stringify(wallet)}\n`);
} catch (error) {
  // Rejected: asking again does not help. Unavailable: it does.
  if (!(error instanceof GatewayRejectedError || error instanceof GatewayUnavailableError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  gateway.close();
}
