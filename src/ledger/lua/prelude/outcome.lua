local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- For how long, in ms, a request of a payout that is unknown may still be on its way.
local function doubt_left(record)
  local doubtUntil = redis.call('HGET', record, 'doubtUntil')
  return doubtUntil and math.max(0, tonumber(doubtUntil) - now_ms()) or 0
end

-- What the record keeps of the outcome that was told last. It is told again, in case the ledger came back without it, and
-- must not undo what was decided since.
local function told_at_length(token, to, txhash)
  -- A value of over 64 bytes would make Redis store the whole record at twice its size.
  return token .. ' ' .. to .. ' ' .. string.sub(redis.sha1hex(txhash), 1, 8)
end

local function told_as(token, to, txhash)
  if not is_compact then return told_at_length(token, to, txhash) end
  return token .. CODE[to] .. string.sub(redis.sha1hex(txhash), 1, 6)
end

-- Whether this outcome was told last; the ledger may have been of an earlier format then.
local function was_told(payout, token, to, txhash)
  return payout.told == told_as(token, to, txhash) or payout.told == told_at_length(token, to, txhash)
end

-- How a txhash stands in its bucket. With the digits that name the bucket these are 92 bits of its SHA-1: too many for two
-- txhashes that are alike, and where two were, the second payout would become `unknown`. The space keeps it apart from a
-- whole txhash, which has none.
local function short_txhash(txhash)
  return ' ' .. string.sub(redis.sha1hex(txhash), 4, 23)
end

-- The id of the payout that has a txhash; false where there is none.
local function txhash_holder(bucket, txhash)
  local short, whole = unpack(redis.call('HMGET', bucket, short_txhash(txhash), txhash))
  return short or whole
end

local function claim_txhash(bucket, txhash, payoutId)
  redis.call('HSET', bucket, is_compact and short_txhash(txhash) or txhash, payoutId)
end

local function release_txhash(bucket, txhash)
  redis.call('HDEL', bucket, short_txhash(txhash), txhash)
end

-- Proof of a payment for which the payout has no place any more: it was written off, or is sent or paid by another attempt.
local function note_late_payment(payout, txhash, at)
  local late = redis.call('HMGET', payout.record, 'lateTxhash', 'lateAt')
  local isRepeated = late[1] == txhash
  if isRepeated then at = late[2] else redis.call('HSET', payout.record, 'lateTxhash', txhash, 'lateAt', at) end
  redis.call('ZADD', LATE, 'NX', at, payout.id)
  if isRepeated and has_event(EVENTS, 'late_payment', payout.id, payout.state, at) then return end
  append_event('late_payment', payout.id, '', payout.state, at, '', 'paid as ' .. txhash)
end
