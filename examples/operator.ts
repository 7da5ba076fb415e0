/**
 * What an operator's script may do: decide about every payout that is `unknown`, by what the gateway's own records say, and then
 * let the account send again. Each decision is recorded with a name and a reason, as the `payouts` commands do it.
 *
 *     REDIS_URL=… GATEWAY_PLATFORM_ID=… npx tsx examples/operator.ts RECORDS.json "ticket 813"
 *
 * Workers with a keyring send again only what an operator's key signed as not sent: set OPERATOR_SIGNER, such as
 * file:/etc/payouts/olga.pem, and the PAYOUT_AUDIENCE of the worker, too.
 *
 * RECORDS.json maps payoutIds to what the gateway's records say: `gatewayId`, or null where they have no payment, and the `attempt`
 * that was looked up. A payout that was sent again since is refused: the records say nothing of the later attempt.
 */
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { ConflictError, openSigner, PayoutOperator, PayoutProducer } from 'payout-queue';

const { REDIS_URL: redisUrl = 'redis://127.0.0.1:6379', GATEWAY_PLATFORM_ID = '4242' } = process.env;
const [file = '', reason = ''] = process.argv.slice(2);
const records = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { attempt: number; gatewayId: string | null }>;
const account = { redisUrl, platformId: Number(GATEWAY_PLATFORM_ID) };
const actor = { by: userInfo().username, reason };

const { OPERATOR_SIGNER, OPERATOR_SIGNER_NAME: name = 'operator', PAYOUT_AUDIENCE: audience = '' } = process.env;
const signing = OPERATOR_SIGNER === undefined ? {} : { signer: openSigner(OPERATOR_SIGNER, { name }), audience };

const producer = new PayoutProducer(account);
// With `gateway: createGatewayClient(…)` a gatewayId is checked with the gateway first; here the records are believed.
const operator = new PayoutOperator({ ...account, ...signing });
try {
  const { payouts } = await producer.list({ state: 'unknown' });
  for (const { payoutId } of payouts) {
    const found = records[payoutId];
    // Not in the records at all: nothing was found out, so nothing is decided.
    if (found === undefined) continue;
    const { attempt, gatewayId } = found;
    try {
      const resolution =
        gatewayId === null ? { kind: 'not_sent' as const } : { kind: 'sent' as const, gatewayId, unchecked: true };
      const { state } = await operator.resolve({ payoutId, attempt }, resolution, actor);
      process.stdout.write(`${payoutId} is ${state}\n`);
    } catch (error) {
      // For example: its request may still be on its way.
      if (!(error instanceof ConflictError)) throw error;
      process.stdout.write(`${error.message}\n`);
      process.exitCode = 1;
    }
  }
  // What could not be decided may be what paused the account.
  if (process.exitCode === undefined) await operator.resume(actor);
} finally {
  await operator.close();
  await producer.close();
}
