-- Turns payouts that may be sent later (queued, or by an operator's decision) into `unknown`. A send that no journal
-- has any more may have paid them.
-- KEYS: the payouts' records
-- ARGV: at, by, reason, inFlightMs (how long a request may still be on its way)
-- Returns: how many were changed
is_one_act = true
local held = {}
for i = OWN + 1, #KEYS do
  local payout = open(KEYS[i])
  if payout and UNSENT[payout.state] then held[#held + 1] = payout end
end
if #held > 0 then note_act(held[1].state, 'unknown', at, by, reason, #held) end
for _, payout in ipairs(held) do
  -- A rejection of a known attempt says nothing about one that no journal has.
  local fields = { 'message', reason, 'inFlightUntil', now_ms() + inFlightMs, 'overlap', payout.attempt }
  move(payout, 'unknown', at, by, reason, fields)
end
return #held
