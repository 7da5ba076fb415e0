-- Accepts payouts; one whose payoutId is there already, or was removed, is left as it is.
-- ARGV: at, then for each payout: payoutId, batch ('' = none), number of fields × 2, field, value, …
-- Returns a list: for each payout 1 when it was accepted now, the record that is there (field, value, …), or
--   the state in which it ended before it was removed.
local at = ARGV[1]
local some_removed = redis.call('HEXISTS', KEYS[1], 'removed') == 1
local results = {}
local i = 2
while i <= #ARGV do
  local payoutId, batch, count = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local record = payout_key(payoutId)
  local removed = some_removed and redis.call('HGET', removed_bucket(payoutId), payoutId)
  if redis.call('EXISTS', record) == 1 then
    results[#results + 1] = redis.call('HGETALL', record)
  elseif removed then
    results[#results + 1] = removed
  else
    redis.call('HSET', record, 'state', 'queued', 'attempt', 0, 'n', 1, 'h0', history_entry('queued', at, '', ''),
      unpack(ARGV, i + 3, i + 2 + count))
    enter(payoutId, '', 'queued', at, '', '')
    if batch ~= '' then redis.call('ZADD', key('batch:' .. batch), redis.call('HGET', KEYS[1], 'seq'), payoutId) end
    results[#results + 1] = 1
  end
  i = i + 3 + count
end
return results
