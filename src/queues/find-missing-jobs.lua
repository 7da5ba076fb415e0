-- Tells which jobs of a queue have to be added (again): those that are gone, or finished without their payout having moved on.
-- KEYS: the queue's `meta` key
-- ARGV: the queue's key prefix (ends with ':'), then job ids
-- Returns: the positions (from 1) of the missing jobs
local missing = {}
for i = 2, #ARGV do
  local job = redis.call('HMGET', ARGV[1] .. ARGV[i], 'timestamp', 'finishedOn')
  if not job[1] or job[2] then missing[#missing + 1] = i - 1 end
end
return missing
