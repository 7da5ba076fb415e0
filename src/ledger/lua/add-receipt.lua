-- Adds a worker's receipt to a payout that ended without one. It is over what the worker has read: another state, attempt
-- or payment, or a later change, has none of it.
-- KEYS: the payout's record
-- ARGV: state, attempt, gatewayId, entries (of its history, their number), then the receipt: field, value, …
-- Returns: 1 added, 0 it has changed since, or has a receipt
local record = KEYS[OWN + 1]
local payout = open(record)
if not payout or payout.state ~= state or payout.attempt ~= tonumber(attempt) or payout.n ~= tonumber(entries) or
    payout.gatewayId ~= gatewayId or redis.call('HEXISTS', record, 'receipt') == 1 then
  return 0
end
redis.call('HSET', record, unpack(ARGV, REST + 1))
return 1
