-- Puts back a payout whose attempt is proved not to have been sent: sending → queued.
-- ARGV: at, payoutId, attempt, epoch, reason
-- Returns: 1 put back, 0 it is not this attempt that is sending (a begin whose fate was unclear did not happen)
local at, payoutId, attempt, epoch, reason = unpack(ARGV)
local current = redis.call('HMGET', payout_key(payoutId), 'state', 'attempt', 'epoch')
if current[1] == 'queued' and current[2] + 1 == tonumber(attempt) then
  -- The begin did not happen, but it, or this very command, may yet come late: with its number used up, neither fits any more.
  -- The epoch tells a number that was used up from the same number sent under a later lease.
  redis.call('HSET', payout_key(payoutId), 'attempt', attempt, 'epoch', epoch)
  return 0
end
if current[1] ~= 'sending' or current[2] ~= attempt or current[3] ~= epoch then return 0 end
move(payoutId, 'queued', at, '', reason)
if redis.call('HGET', key('sender'), 'unanswered') == payoutId .. ' ' .. attempt then
  redis.call('HSET', key('sender'), 'unanswered', '')
end
return 1
