-- Lets the account send again; the breaker counts from zero.
-- ARGV: at, by, reason
-- Returns: 1 resumed, 0 it was not paused
if redis.call('HEXISTS', KEYS[1], 'pausedReason') == 0 then return 0 end
redis.call('HDEL', KEYS[1], 'pausedReason', 'pausedBy', 'pausedAt', 'rejectionsInARow', 'unknownsInARow')
append_event('resumed', '', '', '', ARGV[1], ARGV[2], ARGV[3])
return 1
