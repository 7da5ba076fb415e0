-- Lets the account send again; the breaker counts from zero.
-- ARGV: at, by, reason
-- Returns: 1 resumed, 0 it was not paused
if redis.call('HEXISTS', KEYS[1], 'pausedReason') == 0 then return 0 end
resume(ARGV[2], ARGV[3], ARGV[1])
return 1
