-- Tells of jobs whether their hashes are those of jobs that can still be run.
-- KEYS: the hashes of the jobs
-- Returns a list: for each 0 when it is live, 1 when it is finished or lacks what every job is made with, 2 when there is no hash
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
