-- Stops sending for the account. begin-send reads the pause in its own script, so nothing starts after this.
-- ARGV: at, by, reason
-- Returns: 1 paused now, 2 paused already by others, and now also by this one, 0 this one had paused it (the first
--   reason stays)
publish_pending(redis.call('HGET', LEDGER, 'pendingEvent'))
local isPaused = redis.call('HEXISTS', LEDGER, 'pausedReason') == 1
local fields = paused_fields(at, by, reason)
if not fields then return 0 end
redis.call('HSET', LEDGER, unpack(fields))
publish('paused', at, by, reason)
return isPaused and 2 or 1
