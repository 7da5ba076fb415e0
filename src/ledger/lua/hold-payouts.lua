-- Turns payouts that may be sent from now on (queued, or at an operator's word) into `unknown`: any of them may have
-- been sent by a send that no journal has any more.
-- KEYS: the payouts' records
-- ARGV: at, by, reason, doubtMs (for how long a request may still be on its way)
-- Returns: how many were changed
local at, by, reason, doubtMs = unpack(ARGV)
local changed = 0
for i = OWN + 1, #KEYS do
  local payout = open(KEYS[i])
  if payout and UNSENT[payout.state] then
    -- A rejection of an attempt that is known says nothing of one that no journal has.
    local fields = { 'message', reason, 'doubtUntil', now_ms() + doubtMs, 'overlap', payout.attempt }
    move(payout, 'unknown', at, by, reason, fields)
    changed = changed + 1
  end
end
return changed
