import { fileURLToPath } from 'node:url';

/** The built program, which is what people run. */
export const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

export const PLATFORM_ID = 1_001;
export const SECRET_KEY = 'k-chaos-0123456789';

/** Every payout has an address of its own, so that the gateway's book tells which was paid, and how often. */
export function addressOf(payoutId: string): string {
  return `bc1q${payoutId.toLowerCase()}xxxxxxxxxxxxxxxxxxxxxxxx`;
}
