-- Takes the lease over, if nothing about it changed since the caller last looked.
-- ARGV: owner, seen owner, seen epoch, seen beat, seen released ('' each for an absent lease)
-- Returns: the new epoch (1 or more), 0 when the lease moved in the meantime
local owner = ARGV[1]
local lease = redis.call('HMGET', key('sender'), 'owner', 'epoch', 'beat', 'released')
for i = 1, 4 do
  if (lease[i] or '') ~= ARGV[i + 1] then return 0 end
end
local epoch = tonumber(lease[2] or 0)
-- The `sender` key may have been lost. What is sending still tells under which epoch it began, and that it has no answer.
for _, payoutId in ipairs(redis.call('ZRANGE', key('state:sending'), 0, -1)) do
  local attempt = redis.call('HMGET', payout_key(payoutId), 'attempt', 'epoch')
  epoch = math.max(epoch, tonumber(attempt[2] or 0))
  redis.call('HSET', key('sender'), 'unanswered', payoutId .. ' ' .. attempt[1])
end
redis.call('HSET', key('sender'), 'owner', owner, 'epoch', epoch + 1, 'beat', 0, 'released', 0)
return epoch + 1
