-- Binds the ledger to another gateway, as an operator states: what is sent from now on is paid there.
-- ARGV: at, by, reason, the operator's signed act (JSON; '' = none), audience
-- Returns: 1 done, 0 it was bound so before
local at, by, reason, act, audience = unpack(ARGV)
if account.audience == audience then return 0 end
-- First: an operator whose command was cut short runs it again, and is then told of twice.
append_event('ledger_adopted', '', '', '', at, by, reason)
if act ~= '' then redis.call('HSET', LEDGER, 'adoptAct', act) end
redis.call('HSET', LEDGER, 'audience', audience)
return 1
