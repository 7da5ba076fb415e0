-- Stops sending for the account. begin-send reads the pause in its own script, so nothing starts after this.
-- ARGV: at, by, reason
-- Returns: 1 paused now, 0 it was paused already (the first reason stays)
local at, by, reason = unpack(ARGV)
local ledger = redis.call('HMGET', LEDGER, 'untold', 'pausedReason')
tell_untold(ledger[1])
if ledger[2] then return 0 end
redis.call('HSET', LEDGER, unpack(paused_fields(at, by, reason)))
tell('paused', at, by, reason)
return 1
