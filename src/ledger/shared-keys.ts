/**
 * The Redis keys that belong to no account. They too begin with `{payouts:`, for which the Redis user has rights.
 *
 * | key | type | holds |
 * |---|---|---|
 * | `{payouts:members}` | hash | worker process with several accounts → its heartbeat; may be deleted at any time |
 * | `{payouts:members}:reports` | hash | the same process → its accounts and what it does for them (JSON); may be deleted at any time |
 */
export const SHARED_KEYS = { members: '{payouts:members}', memberReports: '{payouts:members}:reports' } as const;
