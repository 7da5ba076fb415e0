import { within } from '../../clock.js';
import { PayoutError } from '../../errors.js';
import { readGatewayFacts, type Currency } from '../../ledger/gateway-facts.js';
import type { CliContext } from './cli-context.js';
import { withAccount } from './with-account.js';

/** A file can be checked without Redis. */
const READ_WITHIN_MS = 2_000;

/** The names of the gateway's currencies, as the sender cached them; none where they cannot be read: ids are shown then. */
export async function readCurrencies(context: CliContext): Promise<readonly Currency[]> {
  try {
    const reading = withAccount(context, async ({ ledger }) => (await readGatewayFacts(ledger.connection)).currencies);
    return (await within(READ_WITHIN_MS, reading)) ?? [];
  } catch (error) {
    if (error instanceof PayoutError) return [];
    throw error;
  }
}
