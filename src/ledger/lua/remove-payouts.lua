-- Removes final payouts that are old, in one small step. What stays of each is its id with the state it ended in, so that
-- it is never accepted again.
-- ARGV: state (a final one), before (ms since 1970: those that came into the state earlier), limit
-- Returns: how many were removed
local state, before, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if not FINAL[state] then error(state .. ' is not final') end
local removed = 0
for _, payoutId in ipairs(redis.call('ZRANGE', key('state:' .. state), 0, limit - 1)) do
  local record = payout_key(payoutId)
  local fields = redis.call('HMGET', record, 'state', 'n', 'batch', 'txhash')
  local last = fields[2] and redis.call('HGET', record, 'h' .. (fields[2] - 1))
  local at = last and tonumber(string.match(last, '^%d+'))
  if fields[1] == state and at and at < before then
    redis.call('HSET', removed_bucket(payoutId), payoutId, state)
    if fields[3] then redis.call('ZREM', key('batch:' .. fields[3]), payoutId) end
    local txhash = fields[4]
    if txhash and redis.call('HGET', txhash_bucket(txhash), txhash) == payoutId then
      redis.call('HDEL', txhash_bucket(txhash), txhash)
    end
    redis.call('ZREM', key('state:' .. state), payoutId)
    redis.call('DEL', record)
    removed = removed + 1
  end
end
if removed > 0 then redis.call('HINCRBY', KEYS[1], 'removed', removed) end
return removed
