-- Shortens what a wall clock that was put back has made longer: times that are further away than they were ever set.
-- KEYS: the queue's `meta` key
-- ARGV: the queue's key prefix (ends with ':'), limiterMs, stalledCheckMs, lockMs (for how long the queue's keys are set to live),
--   now (wall clock, ms), longestDelayMs (0 = delays are dates that somebody chose, and stay)
-- Returns: how many times were shortened
local prefix, now, longestDelayMs = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[6])
local mended = 0

-- Redis keeps an expiry as a date, so its clock put back by an hour adds an hour to it.
local function shorten(name, ms)
  if redis.call('PTTL', prefix .. name) > tonumber(ms) then
    redis.call('PEXPIRE', prefix .. name, ms)
    mended = mended + 1
  end
end

shorten('limiter', ARGV[2])
shorten('stalled-check', ARGV[3])
for _, job in ipairs(redis.call('LRANGE', prefix .. 'active', 0, -1)) do shorten(job .. ':lock', ARGV[4]) end

if longestDelayMs > 0 then
  -- BullMQ's scores: the date in the high bits, twelve more to tell jobs of the same millisecond apart.
  local latest = (now + longestDelayMs + 1) * 0x1000
  for _, job in ipairs(redis.call('ZRANGE', prefix .. 'delayed', latest, '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
    redis.call('ZADD', prefix .. 'delayed', now * 0x1000, job)
    mended = mended + 1
  end
end
return mended
