-- Records an operator's statement that fewer replicas of the account's Redis can become its master.
-- ARGV: at, by, reason, count (of replicas), names (of these servers and their master, separated by spaces)
-- Returns: the number that the ledger knew before
local ledger = redis.call('HMGET', LEDGER, 'pendingEvent', 'replicas')
publish_pending(ledger[1])
-- The act first: a lower number is never without it.
append_missing_event('replicas_lowered', '', '', '', at, by, reason, '')
redis.call('HSET', LEDGER, 'replicas', count, 'replicaNames', names)
return tonumber(ledger[2] or 0) or 0
