/**
 * Words with which gateways say that an account may not go on. The document lists no message texts (part 7), so this
 * errs on the side of stopping: a pause costs a look by a person, going on costs the account.
 */
const BLOCKED_MESSAGE =
  /\b(block(ed|ing)?|bann?(ed)?|suspend(ed)?|locked|frozen|disabled|deactivated|too many requests|rate.?limit(ed)?|limit exceeded)\b/i;

/**
 * Tells whether a rejection looks like a block of the account rather than a fault of one payout.
 * @returns the reason for the pause, or undefined
 */
export function readBlockedReason(message: string): string | undefined {
  return BLOCKED_MESSAGE.test(message) ? `the gateway's answer looks like a block: ${message}` : undefined;
}
