export const PLATFORM_ID = 1_001;
export const SECRET_KEY = 'k-chaos-0123456789';

/** Every payout has an amount of its own, too: a payment shows whose it is, and whether it was altered. */
export function amountOf(payoutId: string): string {
  return `0.0${payoutId.replace(/\D/g, '')}1`;
}

/** Every payout has an address of its own, so that the gateway's book shows which was paid, and how often. */
export function addressOf(payoutId: string): string {
  return `wallet-${payoutId.toLowerCase()}xxxxxxxxxxxxxxxxxxxxxxxx`;
}
