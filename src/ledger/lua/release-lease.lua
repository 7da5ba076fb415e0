-- Gives the lease back after the holder's last response.
-- ARGV: owner, epoch
-- Returns: 1 done, 0 the lease is not the caller's any more
if not holds_lease(owner, epoch) then return 0 end
redis.call('HSET', SENDER, 'released', 1)
return 1
