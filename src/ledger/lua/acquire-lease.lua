-- Takes the lease over, if nothing about it changed since the caller last looked.
-- ARGV: owner, seen owner, seen epoch, seen beat, seen released ('' each for an absent lease)
-- Returns: the new epoch (1 or more), 0 when the lease moved in the meantime
local owner = ARGV[1]
local lease = redis.call('HMGET', key('sender'), 'owner', 'epoch', 'beat', 'released')
for i = 1, 4 do
  if (lease[i] or '') ~= ARGV[i + 1] then return 0 end
end
local epoch = redis.call('HINCRBY', key('sender'), 'epoch', 1)
redis.call('HSET', key('sender'), 'owner', owner, 'beat', 0, 'released', 0)
return epoch
