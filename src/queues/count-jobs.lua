-- Counts the payouts that wait for a job, and the jobs of their queue, at one moment.
-- KEYS: the outbox, the indexes of the states and the structures of the queue: sorted sets first, then lists
-- ARGV: how many members of the outbox are read, how many of the keys behind the outbox are sorted sets
-- Returns: {the members, how many there are in all, the size of each key behind the outbox}
local reply = { redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1), redis.call('ZCARD', KEYS[1]) }
for i = 2, #KEYS do
  reply[i + 1] = redis.call(i - 1 <= tonumber(ARGV[2]) and 'ZCARD' or 'LLEN', KEYS[i])
end
return reply
