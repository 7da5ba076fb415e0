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
local function told_at_length(token, to, txhash)
  -- A value of over 64 bytes would make Redis store the whole record at twice its size.
  return token .. ' ' .. to .. ' ' .. string.sub(redis.sha1hex(txhash), 1, 8)
end

local function told_as(token, to, txhash)
  if not is_compact then return told_at_length(token, to, txhash) end
  return token .. CODE[to] .. string.sub(redis.sha1hex(txhash), 1, 6)
end

-- The mark may be of an earlier format.
local function was_told(payout, token, to, txhash)
  return payout.told == told_as(token, to, txhash) or payout.told == told_at_length(token, to, txhash)
end

-- A txhash in its bucket: with the bucket's digits, 92 bits of its SHA-1. Two alike are not expected; the second payout
-- would become `unknown`. The space distinguishes it from a whole txhash.
local function short_txhash(txhash)
  return ' ' .. string.sub(redis.sha1hex(txhash), 4, 23)
end

-- One key for all spellings of a transaction, and whether it is hexadecimal. Keep equal to txhashKey in fields.ts.
local function txhash_key(txhash)
  local hex = string.match(txhash, '^0[xX](%x+)$') or (#txhash >= 32 and string.match(txhash, '^%x+$'))
  return hex and string.lower(hex) or txhash, hex
end

local function is_same_txhash(one, other)
  return one and other and txhash_key(one) == txhash_key(other)
end

-- The key, and what earlier versions wrote. Keep equal to txhashSpellings in fields.ts.
local function txhash_spellings(txhash)
  local key, hex = txhash_key(txhash)
  if not hex then return { key } end
  return { key, txhash, '0x' .. key, string.upper(key), '0x' .. string.upper(key) }
end

-- `buckets`: one for each spelling.
local function txhash_holder(buckets, txhash)
  for i, spelling in ipairs(txhash_spellings(txhash)) do
    local short, whole = unpack(redis.call('HMGET', buckets[i], short_txhash(spelling), spelling))
    if short or whole then return short or whole end
  end
end

local function claim_txhash(buckets, txhash, payoutId)
  local key = txhash_key(txhash)
  redis.call('HSET', buckets[1], is_compact and short_txhash(key) or key, payoutId)
end

local function release_txhash(buckets, txhash)
  for i, spelling in ipairs(txhash_spellings(txhash)) do
    redis.call('HDEL', buckets[i], short_txhash(spelling), spelling)
  end
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
