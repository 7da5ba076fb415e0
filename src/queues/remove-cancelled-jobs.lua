-- Removes waiting jobs of cancelled payouts. In a list they are marked and removed together, to walk through it only once.
-- KEYS: the jobs' structure, then for each job its hash, its lock, its payout's record
-- ARGV: type of the structure ('list' or 'sorted set'), the part of a list (first, last; below zero from the tail),
--   a word that is no job's id, then the jobs' ids
-- Returns: the number of removed jobs
local structure = KEYS[1]
local kind, first, last, mark = unpack(ARGV, 1, 4)
local cancelled = {}
for i = 5, #ARGV do
  local hash, lock, record = unpack(KEYS, 3 * i - 13, 3 * i - 11)
  local isCancelled = redis.call('HGET', record, 'state') == 'cancelled' and redis.call('EXISTS', lock) == 0
  if isCancelled then cancelled[ARGV[i]] = hash end
end
local removed = 0
if kind == 'list' then
  local length = redis.call('LLEN', structure)
  local is_near_tail = tonumber(first) < 0
  -- In a list shorter than the part, the part begins at its first entry.
  if is_near_tail then first = math.max(0, length + first) end
  for offset, id in ipairs(redis.call('LRANGE', structure, first, last)) do
    if cancelled[id] then
      redis.call('LSET', structure, first + offset - 1, mark)
      redis.call('DEL', cancelled[id])
      removed = removed + 1
    end
  end
  if removed > 0 then
    -- From the nearer end: the walk ends once all are found.
    local is_near_head = not is_near_tail and first + last < length
    redis.call('LREM', structure, is_near_head and removed or -removed, mark)
  end
else
  for id, hash in pairs(cancelled) do
    if redis.call('ZREM', structure, id) == 1 then
      redis.call('DEL', hash)
      removed = removed + 1
    end
  end
end
return removed
