-- Removes waiting jobs whose payouts are cancelled. In a list they are marked and then removed together: one by one each
-- would cost a walk through the list.
-- KEYS: the structure in which the jobs wait, then for each job its hash, its lock, its payout's record
-- ARGV: type of the structure ('list' or 'sorted set'), the part of a list in which the jobs were seen (first, last; below
--   zero from the tail), a word that is no job's id, then the jobs' ids
-- Returns: how many were removed
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
  -- Where the list is shorter than the part, its first entry is that of the list.
  if is_near_tail then first = math.max(0, length + first) end
  for offset, id in ipairs(redis.call('LRANGE', structure, first, last)) do
    if cancelled[id] then
      redis.call('LSET', structure, first + offset - 1, mark)
      redis.call('DEL', cancelled[id])
      removed = removed + 1
    end
  end
  if removed > 0 then
    -- From the nearer end: the walk is over once all were found.
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
