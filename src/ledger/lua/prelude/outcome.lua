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
local function answer_of(token, to, gatewayId)
  -- A value of over 64 bytes would make Redis store the whole record at twice its size.
  return token .. CODE[to] .. string.sub(redis.sha1hex(gatewayId), 1, 6)
end

-- One key for all spellings of a payment's name. Keep equal to gatewayIdKey in fields.ts.
local function gateway_id_key(gatewayId)
  local hex = string.match(gatewayId, '^0[xX](%x+)$') or (#gatewayId >= 32 and string.match(gatewayId, '^%x+$'))
  return hex and string.lower(hex) or gatewayId
end

local function is_same_gateway_id(one, other)
  return one and other and gateway_id_key(one) == gateway_id_key(other)
end

-- A gatewayId in its bucket: with the bucket's digits, 92 bits of the SHA-1 of its key. Two alike are not expected; the
-- second payout would become `unknown`. Keep equal to shortGatewayId in keys.ts.
local function short_gateway_id(gatewayId)
  return string.sub(redis.sha1hex(gateway_id_key(gatewayId)), 4, 23)
end

local function gateway_id_holder(bucket, gatewayId)
  return redis.call('HGET', bucket, short_gateway_id(gatewayId)) or nil
end

-- Returns: nil if it is the payout's now, else the payout that has it
local function claim_gateway_id(bucket, gatewayId, payoutId)
  if redis.call('HSETNX', bucket, short_gateway_id(gatewayId), payoutId) == 1 then return nil end
  local holder = gateway_id_holder(bucket, gatewayId)
  return holder ~= payoutId and holder or nil
end

local function release_gateway_id(bucket, gatewayId)
  redis.call('HDEL', bucket, short_gateway_id(gatewayId))
end

-- Records proof of a payment that the payout cannot take any more: it was written off, or another attempt is sent or
-- paid. `txhash`: as toTxhashField in payout-record.ts writes it.
local function note_late_payment(payout, gatewayId, txhash, at)
  local late = redis.call('HMGET', payout.record, 'lateGatewayId', 'lateAt')
  local isRepeated = is_same_gateway_id(late[1], gatewayId)
  if isRepeated then
    at = late[2]
  else
    redis.call('HSET', payout.record, 'lateGatewayId', gatewayId, 'lateTxhash', txhash, 'lateAt', at)
  end
  redis.call('ZADD', LATE, 'NX', at, payout.id)
  if isRepeated and has_event(EVENTS, 'late_payment', payout.id, payout.state, at) then return end
  append_event('late_payment', payout.id, '', payout.state, at, '', 'paid as ' .. gatewayId, payout.attempt)
end
