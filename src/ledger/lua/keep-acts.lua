-- Records that a send journal has people's acts on its disk.
-- ARGV: the count of acts that it noted, then the entries of UNKEPT that it has
-- Returns: 1
redis.call('HSET', LEDGER, 'keptActs', math.max(tonumber(redis.call('HGET', LEDGER, 'keptActs') or 0), tonumber(ARGV[1])))
if #ARGV > 1 then redis.call('ZREM', UNKEPT, unpack(ARGV, 2)) end
return 1
