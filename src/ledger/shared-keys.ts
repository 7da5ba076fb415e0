/**
 * The Redis keys that belong to no account. Like those of accounts they begin with `{payouts:`, which is what the rights of
 * the Redis user are given for.
 *
 * | key | type | holds |
 * |---|---|---|
 * | `{payouts:members}` | hash | worker process with several accounts → its heartbeat; may be deleted at any time |
 * | `{payouts:members}:reports` | hash | the same process → the accounts that it has, and what it does for them (JSON); may be deleted at any time |
 */
export const SHARED_KEYS = { members: '{payouts:members}', memberReports: '{payouts:members}:reports' } as const;
