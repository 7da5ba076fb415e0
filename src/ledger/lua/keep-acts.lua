-- Records that a send journal has people's acts on its disk.
-- ARGV: acts (the count that it noted), then the entries of UNKEPT that it has
-- Returns: 1
redis.call('HSET', LEDGER, 'keptActs', math.max(tonumber(redis.call('HGET', LEDGER, 'keptActs') or 0), tonumber(acts)))
if #ARGV > REST then redis.call('ZREM', UNKEPT, unpack(ARGV, REST + 1)) end
return 1
