-- Removes the remains of a job that no worker will ever run, so that a new job can have its id. The same step checks the
-- job once more: a job that only moved since the caller's check stays.
-- KEYS: the job's hash, its lock, then of its queue: wait, paused, active, prioritized, delayed, completed, failed
-- ARGV: job id, entries of a waiting list to search from either end, the structure in which the caller saw the job
--   ('' = none), the nearer end of that list (1 = head, -1 = tail)
-- Returns: 0 the job is well or running; 1 nothing is left of it; 2 it is running, and is active again
local hash, lock, wait, paused, active, prioritized, delayed, completed, failed = unpack(KEYS)
local id, entries, seen, direction = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

-- The end of a waiting list near which the job is. The middle of a long list is not searched: jobs enter and leave at the
-- ends, and the caller has seen the rest.
local function end_of(list)
  if redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', entries) then return -1 end
  if redis.call('LPOS', list, id, 'MAXLEN', entries) then return 1 end
end

local function is_placed()
  return seen ~= '' or redis.call('LPOS', active, id) or redis.call('ZSCORE', delayed, id)
    or redis.call('ZSCORE', prioritized, id) or end_of(wait) or end_of(paused)
end

local function remove_from(list, name)
  local from = end_of(list) or (seen == name and direction)
  if from then redis.call('LREM', list, from, id) end
end

local job = redis.call('HMGET', hash, 'timestamp', 'finishedOn')
local is_live = job[1] and not job[2]
local is_locked = redis.call('EXISTS', lock) == 1

if is_live then
  if is_placed() then return 0 end
  if is_locked then
    -- BullMQ, and its check for dead workers, end a job only if it is among the active ones.
    redis.call('LPUSH', active, id)
    return 2
  end
else
  if is_locked then return 0 end
  redis.call('LREM', active, 0, id)
  for _, set in ipairs({ prioritized, delayed, completed, failed }) do redis.call('ZREM', set, id) end
  remove_from(wait, 'wait')
  remove_from(paused, 'paused')
end
redis.call('DEL', hash)
return 1
