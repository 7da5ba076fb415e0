-- Stops sending for the account. begin-send asks in its own script, so nothing starts once this has returned.
-- ARGV: at, by, reason
-- Returns: 1 paused now, 0 it was paused already (the first reason stays, but a person's takes the place
--   of the journal's, so that adopting the ledger does not lift it)
local by = redis.call('HGET', KEYS[1], 'pausedBy')
if by and not (by == WITNESS and ARGV[2] ~= WITNESS) then return 0 end
pause(ARGV[3], ARGV[2], ARGV[1])
return 1
