-- Shows that the holder is alive.
-- ARGV: owner, epoch
-- Returns: 1 done, 0 the lease is not the caller's any more
if not holds_lease(ARGV[1], ARGV[2]) then return 0 end
redis.call('HINCRBY', SENDER, 'beat', 1)
return 1
