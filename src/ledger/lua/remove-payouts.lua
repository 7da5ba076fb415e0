-- Removes old final payouts, in one small step. Id and final state stay, so that the payout is never accepted again.
-- KEYS: for each payout its record, its bucket of removed ids, its batch, the bucket of its gatewayId (the record again
--   for each that it lacks)
-- ARGV: state (a final one), before (ms since 1970: removes those that came into the state earlier), then for each
--   payout its gatewayId, 1 if it has a batch, else 0, its id in the stream of the state ('' = that is a sorted set),
--   and its record (JSON), which must be unchanged, or '' for any
-- Returns: for each removed payout its place among those given, from 1
before = tonumber(before)
if not FINAL[state] then error(state .. ' is not final') end

-- The archive keeps what was read: a payout that has changed since must be read again first.
local function is_as_read(record, json)
  if json == '' then return true end
  local read, fields = cjson.decode(json), redis.call('HGETALL', record)
  for i = 1, #fields, 2 do
    if read[fields[i]] ~= fields[i + 1] then return false end
    read[fields[i]] = nil
  end
  return next(read) == nil
end

local removed = {}
for i = 0, (#ARGV - REST) / 4 - 1 do
  local record, bucket, batch, gateway_id_bucket = unpack(KEYS, OWN + 4 * i + 1, OWN + 4 * i + 4)
  local gatewayId, has_batch, entry, read = unpack(ARGV, REST + 4 * i + 1, REST + 4 * i + 4)
  local payout = open(record)
  local payoutId = string.sub(record, #PAYOUT_PREFIX + 1)
  local last = payout and redis.call('HGET', record, 'h' .. (payout.n - 1))
  local at = last and tonumber((read_history_entry(last)))
  if payout and payout.state == state and at and at < before and is_as_read(record, read) then
    redis.call('HSET', bucket, payoutId, state)
    if has_batch == '1' then redis.call('ZREM', batch, payoutId) end
    if gatewayId ~= '' and gateway_id_holder(gateway_id_bucket, gatewayId) == payoutId then
      release_gateway_id(gateway_id_bucket, gatewayId)
    end
    redis.call('ZREM', LATE, payoutId)
    redis.call('DEL', record)
    payout = nil
    removed[#removed + 1] = i + 1
  end
  -- Remove the index entry last, even after an interrupted call: the index leads to payouts that remain to be removed.
  if not payout and not ENDED[state] then redis.call('ZREM', INDEX[state], payoutId) end
  if not payout and ENDED[state] then redis.call('XDEL', INDEX[state], entry) end
end
return removed
