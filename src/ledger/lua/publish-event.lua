-- Publishes a fact about the account: the loaded policy, where the send journal ends, a drop of the balance.
-- ARGV: kind, at, to (hash of the policy, or of the journal's newest line; else ''), by, reason
-- Returns: 1
publish_pending(redis.call('HGET', LEDGER, 'pendingEvent'))
-- A repetition after an interruption or a lost reply appends nothing.
append_missing_event(kind, '', '', to, at, by, reason, '')
return 1
