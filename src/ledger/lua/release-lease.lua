-- Gives the lease back after the holder's last response.
-- ARGV: owner, epoch
-- Returns: 1 done, 0 the lease is not the caller's any more
if not holds_lease(ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', SENDER, 'released', 1)
return 1
