-- Lets the account send again; the breaker counts from zero. A journal's objection is not a pause: an adoption ends it.
-- ARGV: at, by, reason, the operator's signed act (JSON; '' = none): stored even without a pause here, for workers that
--   keep their own
-- Returns: 1 resumed, 0 it was not paused, {-9, journalId, reason} a journal objects to this ledger
local at, by, reason, act = unpack(ARGV)
tell_untold(redis.call('HGET', LEDGER, 'untold'))
local objection = redis.call('HGETALL', OBJECTIONS)
if #objection > 0 then return { -9, objection[1], cjson.decode(objection[2]).reason } end
if act ~= '' then redis.call('HSET', LEDGER, 'resumeAct', act) end
if redis.call('HEXISTS', LEDGER, 'pausedReason') == 0 then return 0 end
redis.call('HSET', LEDGER, 'untold', untold('resumed', at, by, reason))
redis.call('HDEL', LEDGER, unpack(UNPAUSED))
tell('resumed', at, by, reason)
return 1
