-- Writes the statistics with the last event counted, unless another process wrote since. One HSET holds all that
-- belongs together, so no reader sees a part of it.
-- KEYS: the statistics
-- ARGV: revision (as the caller read it, '' = there was none), number of fields to remove, those, then field, value, …
-- Returns: 1 written, 0 they are of another revision
local statistics = KEYS[OWN + 1]
local removed = tonumber(ARGV[2])
if (redis.call('HGET', statistics, 'revision') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', statistics, unpack(ARGV, 3 + removed))
if removed > 0 then redis.call('HDEL', statistics, unpack(ARGV, 3, 2 + removed)) end
return 1
