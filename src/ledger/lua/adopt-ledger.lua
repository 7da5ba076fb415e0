-- Raises the ledger above everything that the journal knows, after every witnessed send was reconciled.
-- A request may still be on its way, so the next holder of the lease waits as after an unanswered one.
-- A pause that the journal's objection caused has served its purpose.
-- ARGV: at, by, reason, epoch (the journal's highest), sends (the journal's highest)
-- Returns: {epoch, sends} as they are now
local at, by, reason, epoch, sends = unpack(ARGV)
local sender = redis.call('HMGET', key('sender'), 'epoch', 'sends')
local newEpoch = math.max(tonumber(sender[1] or 0), tonumber(epoch)) + 1
local newSends = math.max(tonumber(sender[2] or 0), tonumber(sends))
redis.call('HSET', key('sender'), 'owner', '', 'epoch', newEpoch, 'beat', 0, 'released', 0, 'sends', newSends,
  'unanswered', 'adopted 0')
append_event('ledger_adopted', '', '', '', at, by, reason)
if redis.call('HGET', KEYS[1], 'pausedBy') == WITNESS then resume(by, reason, at) end
return { newEpoch, newSends }
