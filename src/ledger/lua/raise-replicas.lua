-- Records that the account's Redis has more replicas than the ledger knew.
-- ARGV: number of replicas, their names (separated by spaces)
-- Returns: 1 raised, 0 the ledger knew as many
local count, names = unpack(ARGV)
if (tonumber(redis.call('HGET', LEDGER, 'replicas') or 0) or 0) >= tonumber(count) then return 0 end
redis.call('HSET', LEDGER, 'replicas', count, 'replicaNames', names)
return 1
