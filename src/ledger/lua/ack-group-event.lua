-- Notes that a group is done with an event, if it is still the consumer's to say so.
-- ARGV: group, consumer, eventId
-- Returns: 1 done, 0 the event is not the consumer's (another took over, it was acknowledged before, or the group is gone)
local group, consumer, eventId = unpack(ARGV)
local pending = redis.pcall('XPENDING', EVENTS, group, eventId, eventId, 1)
if pending.err and string.find(pending.err, 'NOGROUP') then return 0 end
if pending.err then return pending end
if not pending[1] or pending[1][2] ~= consumer then return 0 end
return redis.call('XACK', EVENTS, group, eventId)
