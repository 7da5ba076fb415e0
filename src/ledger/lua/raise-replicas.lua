-- Records that the account's Redis has more replicas than the ledger knew, or as many with other names.
-- ARGV: count (of replicas), names (of these servers and their master, separated by spaces)
-- Returns: 1 recorded, 0 the ledger knew more
if (tonumber(redis.call('HGET', LEDGER, 'replicas') or 0) or 0) > tonumber(count) then return 0 end
redis.call('HSET', LEDGER, 'replicas', count, 'replicaNames', names)
return 1
