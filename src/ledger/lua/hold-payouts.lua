-- Turns payouts that may be sent from now on (queued, or at an operator's word) into `unknown`: any of them may have
-- been sent by a send that no journal has any more.
-- KEYS: the payouts' records
-- ARGV: at, by, reason, doubtMs (for how long a request may still be on its way)
-- Returns: how many were changed
local at, by, reason, doubtMs = unpack(ARGV)
is_one_act = true
local held = {}
for i = OWN + 1, #KEYS do
  local payout = open(KEYS[i])
  if payout and UNSENT[payout.state] then held[#held + 1] = payout end
end
if #held > 0 then note_act(held[1].state, 'unknown', at, by, reason, #held) end
for _, payout in ipairs(held) do
  -- A rejection of an attempt that is known says nothing of one that no journal has.
  local fields = { 'message', reason, 'doubtUntil', now_ms() + doubtMs, 'overlap', payout.attempt }
  move(payout, 'unknown', at, by, reason, fields)
end
return #held
