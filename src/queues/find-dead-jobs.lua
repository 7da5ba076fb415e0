-- KEYS: the hashes of jobs
-- Returns a list: for each 0 if it can still run, 1 if it is finished or lacks a field of every job, 2 if it does not exist
local kinds = {}
for i = 1, #KEYS do
  local job = redis.call('HMGET', KEYS[i], 'timestamp', 'finishedOn')
  if job[1] and not job[2] then
    kinds[i] = 0
  else
    kinds[i] = redis.call('EXISTS', KEYS[i]) == 1 and 1 or 2
  end
end
return kinds
