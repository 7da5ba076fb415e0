-- Turns attempts that an earlier sender left in `sending` into `unknown`: they may have been sent.
-- KEYS: the payouts' records
-- ARGV: at, owner, epoch (of the present holder), reason, inFlightMs (how long the request of a send may be on its way
--   whose begin the ledger has forgotten), then for each payout: attempt, token
-- Returns: {-1} the lease is not the caller's, else {0, payoutId, …} of those that were changed
if not holds_lease(owner, epoch) then return { -1 } end
-- As the caller read it, though number and tokens do not fit each other, because someone has altered one of them.
local function is_newest(payout, attempt, token)
  if payout.attempt ~= attempt then return false end
  local word = payout.tokens[#payout.tokens]
  return string.match(word or '', '[^/]*$') == token
end

local changed = { 0 }
for i = OWN + 1, #KEYS do
  -- A key of another type is no payout: remove-entries.lua ends its entry.
  local state = redis.pcall('HGET', KEYS[i], 'state')
  local payout = state and type(state) ~= 'table' and open(KEYS[i])
  local given = REST + 2 * (i - OWN)
  local attempt, token = ARGV[given - 1], ARGV[given]
  attempt = tonumber(attempt)
  local is_seen = payout and (is_last(payout, attempt, token) or is_newest(payout, attempt, token))
  if is_seen and payout.state == 'sending' then
    move(payout, 'unknown', at, '', reason, { 'message', reason, 'inFlightUntil', in_flight_until(token, inFlightMs) })
    changed[#changed + 1] = payout.id
  end
end
return changed
