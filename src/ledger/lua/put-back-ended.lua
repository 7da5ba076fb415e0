-- Ends a payout again that was cancelled or written off, says a send journal, in a ledger that may have forgotten that.
-- KEYS: the payout's record, its bucket of removed ids
-- ARGV: at, by, reason, to (the state that ended it: `cancelled` makes a payout `written_off` that was paid late), then
--   field, value, … of the payout
-- Returns: its new state, '' if nothing had to be done
local record, removed = unpack(KEYS, OWN + 1, OWN + 2)
local payout = open(record)
if not payout then
  if redis.call('HEXISTS', removed, string.sub(record, #PAYOUT_PREFIX + 1)) == 1 then return '' end
  -- Enqueueing it again would pay it. That adds the application's other fields instead.
  create(record, to, at, by, reason, { 'attempt', 0, 'adopted', 1, unpack(ARGV, REST + 1) })
  return to
end
-- A send that the journals know was adopted first: what may have been paid stays open.
if not UNSENT[payout.state] and not (payout.state == 'unknown' and to == 'written_off') then return '' end
-- `cancelled` says that nothing was paid.
if to == 'cancelled' and redis.call('HEXISTS', record, 'lateGatewayId') == 1 then to = 'written_off' end
move(payout, to, at, by, reason)
return to
