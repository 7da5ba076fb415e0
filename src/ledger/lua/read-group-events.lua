-- Gives a consumer group's next events to one consumer. Only one consumer of a group has events at a time, to keep the
-- order of the stream. A new group begins with the oldest event.
-- ARGV: group, consumer, claimAfterMs (a silent consumer's events may be taken over after this), limit
-- Returns: {newest eventId, ms until another consumer's events may be taken over (0 = no other has any), {{eventId,
--   {field, value, …}}, …}}
claimAfterMs = tonumber(claimAfterMs)
-- This fails if the group exists; any other error repeats in the next command.
redis.pcall('XGROUP', 'CREATE', EVENTS, group, '0', 'MKSTREAM')
local newest = redis.call('XREVRANGE', EVENTS, '+', '-', 'COUNT', 1)[1]
local newestId = newest and newest[1] or '0-0'

local eventIds = {}
for _, pending in ipairs(redis.call('XPENDING', EVENTS, group, '-', '+', limit)) do
  local eventId, owner, idleMs = unpack(pending)
  if owner ~= consumer and idleMs < claimAfterMs then return { newestId, claimAfterMs - idleMs, {} } end
  eventIds[#eventIds + 1] = eventId
end
if #eventIds > 0 then
  local claimed = redis.call('XCLAIM', EVENTS, group, consumer, 0, unpack(eventIds))
  -- Empty if someone trimmed the events; there may be later ones.
  if #claimed > 0 then return { newestId, 0, claimed } end
end
local read = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', limit, 'STREAMS', EVENTS, '>')
return { newestId, 0, read and read[1][2] or {} }
