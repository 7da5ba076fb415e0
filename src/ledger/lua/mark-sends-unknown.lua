-- Turns attempts that an earlier sender left in `sending` into `unknown`: they may have been sent.
-- KEYS: the payouts' records
-- ARGV: at, owner, epoch (of the present holder), reason, inFlightMs (how long the request of a send may be on its way
--   whose begin the ledger has forgotten), then for each payout: attempt, token
-- Returns: {-1} the lease is not the caller's, else {0, payoutId, …} of those that were changed
local at, owner, epoch, reason, inFlightMs = unpack(ARGV, 1, 5)
if not holds_lease(owner, epoch) then return { -1 } end
local changed = { 0 }
for i = OWN + 1, #KEYS do
  local payout = open(KEYS[i])
  local attempt, token = unpack(ARGV, 6 + 2 * (i - OWN - 1), 7 + 2 * (i - OWN - 1))
  if payout and payout.state == 'sending' and is_last(payout, tonumber(attempt), token) then
    move(payout, 'unknown', at, '', reason, { 'message', reason, 'inFlightUntil', in_flight_until(token, inFlightMs) })
    changed[#changed + 1] = payout.id
  end
end
return changed
