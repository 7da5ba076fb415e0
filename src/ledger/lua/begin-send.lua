-- Begins the one attempt of a payout: queued → sending. From here on, only the outcome decides.
-- ARGV: at, ledgerId, owner, epoch, sends (as the sender knows them), payoutId, attempt (the new one)
-- Returns: the number of sends begun, this one included (1 or more), or
--   {-1} the lease is not the caller's        {-2, ledgerId} another ledger than the caller knows
--   {-3, sends} sends are missing or more     {-4, reason} the account is paused
--   {-5, payoutId, …} other payouts are sending   {-6, state, attempt} not queued, or not at this attempt
local at, ledgerId, owner, epoch, sends, payoutId, attempt = unpack(ARGV)
local ledger = redis.call('HMGET', KEYS[1], 'id', 'pausedReason')
if ledger[1] ~= ledgerId then return { -2, ledger[1] or '' } end
if not holds_lease(owner, epoch) then return { -1 } end
local begun = redis.call('HGET', key('sender'), 'sends') or '0'
if begun ~= sends then return { -3, begun } end
if ledger[2] then return { -4, ledger[2] } end
local others = redis.call('ZRANGE', key('state:sending'), 0, -1)
if #others > 0 then return { -5, unpack(others) } end
local current = redis.call('HMGET', payout_key(payoutId), 'state', 'attempt')
if current[1] ~= 'queued' or current[2] + 1 ~= tonumber(attempt) then
  return { -6, current[1] or '', current[2] or '' }
end
redis.call('HSET', payout_key(payoutId), 'attempt', attempt, 'epoch', epoch)
-- A process that takes over sees in `unanswered` that a request may still be on its way.
redis.call('HSET', key('sender'), 'sends', begun + 1, 'unanswered', payoutId .. ' ' .. attempt)
move(payoutId, 'sending', at, '', '')
return begun + 1
