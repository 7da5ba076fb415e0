-- Removes what is left of a job that no worker will ever run, so that a new job can be added under its id. The job is looked
-- at once more in the same step: one that only moved since the caller looked stays as it is.
-- KEYS: the job's hash, its lock, then of its queue: wait, paused, active, prioritized, delayed, completed, failed
-- ARGV: job id, how many entries of a waiting list to search from either end, the structure in which the caller saw the job
--   ('' = none), the end of that list from which it is nearer (1 = head, -1 = tail)
-- Returns: 0 the job is well, or in the hands of a worker; 1 nothing is left of it;
--   2 a worker runs it, and it stands among the active jobs again
local hash, lock, wait, paused, active, prioritized, delayed, completed, failed = unpack(KEYS)
local id, entries, seen, direction = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

-- From which end of a waiting list the job is found. A long list is not searched to the end: jobs enter and leave at its
-- ends, and those in between the caller has seen.
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
    -- BullMQ ends a job only where it finds it among the active ones, and so does its check for workers that have died.
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
