-- Holds a payout that may not be sent: queued → held. Its field `held` has the reason; a held payout gets the new one, unless a
-- person holds it.
-- KEYS: the payout's record
-- ARGV: at, attempt (when it was checked: another one is not held; '' for any), held (JSON: kind, reason, message,
--   isTampering: then there is an event of its own)
-- Returns: 1 it is held now, or was at this attempt; 0 it is not queued any more, or at another attempt
local record = KEYS[OWN + 1]
local payout = open(record)
if not payout or (attempt ~= '' and payout.attempt ~= tonumber(attempt)) then return 0 end
if payout.state == 'held' then
  if not held_by_hand(payout) then redis.call('HSET', record, 'held', held) end
  return 1
end
if payout.state ~= 'queued' then return 0 end
move(payout, 'held', at, '', cjson.decode(held).message, { 'held', held })
return 1
