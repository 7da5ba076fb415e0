-- The requeue count is a part of a job's id.
-- KEYS: the records of the payouts
-- ARGV: the state
-- Returns a list: for each its requeue count, or -1 if it is missing or in another state
local counts = {}
for i = 1, #KEYS do
  local record = redis.call('HMGET', KEYS[i], 'state', 'round')
  counts[i] = record[1] == ARGV[1] and tonumber(record[2] or 0) or -1
end
return counts
