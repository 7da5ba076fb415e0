-- Acknowledges events for a group, if they are still this consumer's.
-- ARGV: group, consumer, the last eventId, the eventIds before it, …
-- Returns: 1 done, 0 the last event is another consumer's, or the group is gone, -1 it was acknowledged before
local pending = redis.pcall('XPENDING', EVENTS, group, eventId, eventId, 1)
if pending.err and string.find(pending.err, 'NOGROUP') then return 0 end
if pending.err then return pending end
if not pending[1] then return -1 end
if pending[1][2] ~= consumer then return 0 end
-- All pending events of a group belong to one consumer, so the earlier ones are its own too.
redis.call('XACK', EVENTS, group, eventId, unpack(ARGV, REST + 1))
return 1
