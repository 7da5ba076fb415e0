-- Stops sending for the account. begin-send asks in its own script, so nothing starts once this has returned.
-- ARGV: at, by, reason
-- Returns: 1 paused now, 0 it was paused already (the first reason stays)
if redis.call('HEXISTS', KEYS[1], 'pausedReason') == 1 then return 0 end
pause(ARGV[3], ARGV[2], ARGV[1])
return 1
