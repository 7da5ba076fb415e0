-- Turns what an earlier sender left in `sending` into `unknown`: it may have been sent.
-- ARGV: at, owner, epoch (of the present holder), reason
-- Returns: {-1} the lease is not the caller's, else {0, payoutId, …} of those that were changed
local at, owner, epoch, reason = unpack(ARGV)
if not holds_lease(owner, epoch) then return { -1 } end
local changed = { 0 }
for _, payoutId in ipairs(redis.call('ZRANGE', key('state:sending'), 0, -1)) do
  if redis.call('HGET', payout_key(payoutId), 'epoch') ~= epoch then
    move(payoutId, 'unknown', at, '', reason)
    redis.call('HSET', payout_key(payoutId), 'message', reason)
    changed[#changed + 1] = payoutId
  end
end
return changed
