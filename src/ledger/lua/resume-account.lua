-- Ends one pause of the account, which sends again once none remains; the breaker then counts from zero. A journal's
-- objection is not a pause: an adoption ends it.
-- ARGV: at, by, reason, act (the operator's, signed, JSON; '' = none: stored even without a pause here, for workers
--   that keep their own), of (whose pause ends; '' = the only one, else the caller's own)
-- Returns: 1 resumed, 2 ended, but others remain, 0 it was not paused, {-9, journalId, reason} a journal objects to this
--   ledger, {-24, by, …} which pauses stand, and none of them is meant
use_act(act)
publish_pending(redis.call('HGET', LEDGER, 'pendingEvent'))
local objection = redis.call('HGETALL', OBJECTIONS)
if #objection > 0 then return { -9, objection[1], cjson.decode(objection[2]).reason } end
local pauses = read_pauses()
if of == '' and #pauses > 1 then of = by end
local names, others = {}, {}
for _, pause in ipairs(pauses) do
  names[#names + 1] = pause.by
  if of ~= '' and pause.by ~= of then others[#others + 1] = pause end
end
if #pauses > 0 and #others == #pauses then return { -24, unpack(names) } end
if #others > 0 then
  -- The act is stored only with the last pause: until then it must end none that a worker keeps.
  append_act('pause_ended', '', '', '', at, by, of .. ': ' .. reason, 1, '')
  local first, more = others[1], {}
  for i = 2, #others do more[#more + 1] = others[i] end
  redis.call('HSET', LEDGER, 'pausedReason', first.reason, 'pausedBy', first.by, 'pausedAt', first.at,
    'morePauses', #more > 0 and cjson.encode(more) or '[]')
  return 2
end
if act ~= '' then redis.call('HSET', LEDGER, 'resumeAct', act) end
if #pauses == 0 then return 0 end
redis.call('HSET', LEDGER, 'pendingEvent', pending_event('resumed', at, by, reason))
redis.call('HDEL', LEDGER, unpack(UNPAUSED))
publish('resumed', at, by, reason)
return 1
