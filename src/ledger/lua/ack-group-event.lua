-- Notes that a group is done with events, if they are still the consumer's to say so.
-- ARGV: group, consumer, the last eventId, the eventIds before it, …
-- Returns: 1 done, 0 the last event is not the consumer's (another took over, it was acknowledged before, or the group is gone)
local group, consumer, eventId = unpack(ARGV)
local pending = redis.pcall('XPENDING', EVENTS, group, eventId, eventId, 1)
if pending.err and string.find(pending.err, 'NOGROUP') then return 0 end
if pending.err then return pending end
if not pending[1] or pending[1][2] ~= consumer then return 0 end
-- The consumer has those before too: all pending events of a group are one consumer's.
redis.call('XACK', EVENTS, group, unpack(ARGV, 3))
return 1
