-- Shows that the holder is alive.
-- ARGV: owner, epoch
-- Returns: {the number of heartbeats since the lease was taken, this one included, the number of outbox entries, the
--   number of objections}; 0 the lease is not the caller's any more
if not holds_lease(ARGV[1], ARGV[2]) then return 0 end
return { redis.call('HINCRBY', SENDER, 'beat', 1), redis.call('ZCARD', OUTBOX), redis.call('HLEN', OBJECTIONS) }
