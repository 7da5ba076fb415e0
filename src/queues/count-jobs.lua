-- Counts the payouts that wait for a job and their queue's jobs at one moment.
-- KEYS: the outbox, the indexes of the states and the structures of the queue: sorted sets first, then lists
-- ARGV: members of the outbox to read, number of sorted sets behind the outbox
-- Returns: {the members, their total number, the size of each key behind the outbox}
local reply = { redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1), redis.call('ZCARD', KEYS[1]) }
for i = 2, #KEYS do
  reply[i + 1] = redis.call(i - 1 <= tonumber(ARGV[2]) and 'ZCARD' or 'LLEN', KEYS[i])
end
return reply
