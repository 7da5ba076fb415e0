-- Reads how often payouts that are in a state were requeued by an operator, which is a part of their jobs' ids.
-- KEYS: the records of the payouts
-- ARGV: the state
-- Returns a list: for each its requeue count, or -1 when it is in another state, or not there
local counts = {}
for i = 1, #KEYS do
  local record = redis.call('HMGET', KEYS[i], 'state', 'round')
  counts[i] = record[1] == ARGV[1] and tonumber(record[2] or 0) or -1
end
return counts
