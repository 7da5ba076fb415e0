-- Removes final payouts that are old, in one small step. What stays of each is its id with the state it ended in, so that
-- it is never accepted again.
-- KEYS: for each payout its record, its bucket of removed ids, the bucket of its txhash, its batch (where it has none of
--   the last two, the record again)
-- ARGV: state (a final one), before (ms since 1970: those that came into the state earlier), then for each payout its txhash
--   and 1 where it has a batch, else 0
-- Returns: for each payout that was removed its place among those given, from 1
local state, before = ARGV[1], tonumber(ARGV[2])
if not FINAL[state] then error(state .. ' is not final') end
local removed = {}
for i = 0, (#ARGV - 2) / 2 - 1 do
  local record, bucket, txhash_bucket, batch = unpack(KEYS, OWN + 4 * i + 1, OWN + 4 * i + 4)
  local txhash, has_batch = ARGV[2 * i + 3], ARGV[2 * i + 4] == '1'
  local payout = open(record)
  local payoutId = string.sub(record, #PAYOUT_PREFIX + 1)
  local last = payout and redis.call('HGET', record, 'h' .. (payout.n - 1))
  local at = last and tonumber(string.match(last, '^%d+'))
  if payout and payout.state == state and at and at < before then
    if #removed == 0 then redis.call('HSET', LEDGER, 'removed', 1) end
    redis.call('HSET', bucket, payoutId, state)
    if has_batch then redis.call('ZREM', batch, payoutId) end
    if txhash ~= '' and redis.call('HGET', txhash_bucket, txhash) == payoutId then
      redis.call('HDEL', txhash_bucket, txhash)
    end
    redis.call('ZREM', LATE, payoutId)
    redis.call('DEL', record)
    payout = nil
    removed[#removed + 1] = i + 1
  end
  -- Last, and also where an earlier call ended right before it: the index leads to the payouts that are left to remove.
  if not payout then redis.call('ZREM', INDEX[state], payoutId) end
end
return removed
