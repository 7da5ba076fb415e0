local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- How long, in ms, the request of an `unknown` payout may still be on its way.
local function in_flight_left(record)
  local untilMs = redis.call('HGET', record, 'inFlightUntil')
  return untilMs and math.max(0, tonumber(untilMs) - now_ms()) or 0
end

-- Until when the request of a send may arrive, as its sender said when it began.
-- `inFlightMs`: from now on, if the ledger does not have that.
local function in_flight_until(token, inFlightMs)
  local last, untilMs = unpack(redis.call('HMGET', SENDER, 'last', 'inFlightUntil'))
  return last == token and untilMs or now_ms() + inFlightMs
end

-- The record's mark of the last recorded outcome. A repetition, in case the ledger lost it, must not undo later
-- decisions.
local function told_as(token, to, txhash)
  -- A value of over 64 bytes would make Redis store the whole record at twice its size.
  return token .. CODE[to] .. string.sub(redis.sha1hex(txhash), 1, 6)
end

-- One key for all spellings of a transaction. Keep equal to txhashKey in fields.ts.
local function txhash_key(txhash)
  local hex = string.match(txhash, '^0[xX](%x+)$') or (#txhash >= 32 and string.match(txhash, '^%x+$'))
  return hex and string.lower(hex) or txhash
end

local function is_same_txhash(one, other)
  return one and other and txhash_key(one) == txhash_key(other)
end

-- A txhash in its bucket: with the bucket's digits, 92 bits of the SHA-1 of its key. Two alike are not expected; the
-- second payout would become `unknown`. Keep equal to shortTxhash in keys.ts.
local function short_txhash(txhash)
  return string.sub(redis.sha1hex(txhash_key(txhash)), 4, 23)
end

local function txhash_holder(bucket, txhash)
  return redis.call('HGET', bucket, short_txhash(txhash)) or nil
end

local function claim_txhash(bucket, txhash, payoutId)
  redis.call('HSET', bucket, short_txhash(txhash), payoutId)
end

local function release_txhash(bucket, txhash)
  redis.call('HDEL', bucket, short_txhash(txhash))
end

-- Records proof of a payment that the payout cannot take any more: it was written off, or another attempt is sent or
-- paid.
local function note_late_payment(payout, txhash, at)
  local late = redis.call('HMGET', payout.record, 'lateTxhash', 'lateAt')
  local isRepeated = is_same_txhash(late[1], txhash)
  if isRepeated then at = late[2] else redis.call('HSET', payout.record, 'lateTxhash', txhash, 'lateAt', at) end
  redis.call('ZADD', LATE, 'NX', at, payout.id)
  if isRepeated and has_event(EVENTS, 'late_payment', payout.id, payout.state, at) then return end
  append_event('late_payment', payout.id, '', payout.state, at, '', 'paid as ' .. txhash, payout.attempt)
end
