-- Writes the fields of a job that BullMQ cannot read. A job that has ended meanwhile gets none.
-- KEYS: the job's hash
-- ARGV: field, value, …
-- Returns: 1 written, 0 there is no such job
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
