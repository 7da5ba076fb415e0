-- Shows that the holder is alive.
-- ARGV: owner, epoch
-- Returns: {the number of heartbeats since the lease was taken, this one included, the number of outbox entries, the
--   number of objections, the token of an unanswered send ('' = none), for how many ms its request may arrive ('' = that
--   is lost)}; 0 the lease is not the caller's any more
if not holds_lease(ARGV[1], ARGV[2]) then return 0 end
local unanswered, inFlightMs = unpack(redis.call('HMGET', SENDER, 'unanswered', 'inFlightMs'))
return { redis.call('HINCRBY', SENDER, 'beat', 1), redis.call('ZCARD', OUTBOX), redis.call('HLEN', OBJECTIONS),
  unanswered or '', inFlightMs or '' }
