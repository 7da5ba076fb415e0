-- Records what the gateway answered when it was asked for a payout by its order ids, and when it is asked next.
-- KEYS: the payout's record, the account's look-ups
-- ARGV: at, attempt (the payout's when it was asked), lookUp (JSON of order-look-up.ts), nextAt (ms since 1970; '' = it is
--   not asked again), other ('' = none; in what a payment with an order id of this payout is another one)
-- Returns: 1 recorded, 0 there is no such payout, or it was sent again since
local record, look_ups = KEYS[OWN + 1], KEYS[OWN + 2]
local payout = open(record)
if not payout then redis.call('ZREM', look_ups, string.sub(record, #PAYOUT_PREFIX + 1)) end
if not payout or payout.attempt ~= tonumber(attempt) then return 0 end
-- The alarm first: a record that has the answer would hide that it was never told.
if other ~= '' then
  append_missing_event('other_payment', payout.id, '', payout.state, at, '', other, payout.attempt)
  redis.call('HSET', LEDGER, 'otherPayment', at .. ' ' .. payout.id)
end
redis.call('HSET', record, 'lookUp', lookUp)
if nextAt == '' then redis.call('ZREM', look_ups, payout.id) else redis.call('ZADD', look_ups, nextAt, payout.id) end
return 1
