-- Writes the statistics with the last event counted, unless another process wrote since. One script writes all that
-- belongs together, so no reader sees a part of it.
-- KEYS: the statistics, the batches
-- ARGV: revision (as the caller read it, '' = there was none), then for each of the two: number of fields × 2, field,
--   value, …, number of fields to remove, those
-- Returns: 1 written, 0 they are of another revision
local statistics, batches = KEYS[OWN + 1], KEYS[OWN + 2]
if (redis.call('HGET', statistics, 'revision') or '') ~= revision then return 0 end
local i = REST + 1
local function apply(command, key)
  local last = i + tonumber(ARGV[i])
  if last > i then redis.call(command, key, unpack(ARGV, i + 1, last)) end
  i = last + 1
end
apply('HSET', statistics)
apply('HDEL', statistics)
apply('HSET', batches)
apply('HDEL', batches)
return 1
