-- Drops old events in one small step, except those that a consumer group has yet to acknowledge.
-- ARGV: keep (the fewest events that stay), limit (about the most that are dropped)
-- Returns: how many were dropped
keep, limit = tonumber(keep), tonumber(limit)
local surplus = redis.call('XLEN', EVENTS) - keep
if surplus <= 0 then return 0 end
local oldest = redis.call('XRANGE', EVENTS, '-', '+', 'COUNT', math.min(surplus, limit))

-- Compare ids by their place among the oldest events: they exceed Lua's exact numbers.
local place = {}
for i, event in ipairs(oldest) do place[event[1]] = i end
local dropped = #oldest
for _, group in ipairs(redis.call('XINFO', 'GROUPS', EVENTS)) do
  local info = {}
  for i = 1, #group, 2 do info[group[i]] = group[i + 1] end
  local pending = redis.call('XPENDING', EVENTS, info['name'], '-', '+', 1)[1]
  if pending then
    dropped = math.min(dropped, (place[pending[1]] or dropped + 1) - 1)
  else
    local unread = redis.call('XRANGE', EVENTS, '(' .. info['last-delivered-id'], '+', 'COUNT', 1)[1]
    if unread then dropped = math.min(dropped, (place[unread[1]] or dropped + 1) - 1) end
  end
end
if dropped == 0 then return 0 end
local first_kept = redis.call('XRANGE', EVENTS, '(' .. oldest[dropped][1], '+', 'COUNT', 1)[1]
return redis.call('XTRIM', EVENTS, 'MINID', '~', first_kept[1])
