-- Sets how long a consumer counts as silent: 0 keeps its events, a long time lets another take them at once.
-- ARGV: group, consumer, idleMs, limit
-- Returns: how many events the consumer has
local eventIds = {}
for _, pending in ipairs(redis.call('XPENDING', EVENTS, group, '-', '+', limit, consumer)) do
  eventIds[#eventIds + 1] = pending[1]
end
if #eventIds == 0 then return 0 end
local args = { 'XCLAIM', EVENTS, group, consumer, 0, unpack(eventIds) }
args[#args + 1] = 'IDLE'
args[#args + 1] = idleMs
args[#args + 1] = 'JUSTID'
return #redis.call(unpack(args))
