-- Records an attempt's outcome, even a late one, and pauses the account if an operator is needed. Repeating it
-- completes an interrupted call, and changes nothing else.
-- KEYS: the payout's record, the record of the payout that has the same gatewayId (the payout's own record if there is
--   none), the bucket of the gatewayId if there is one
-- ARGV: at, attempt, token, to (in_progress, rejected or unknown), gatewayId, txhash (as toTxhashField in
--   payout-record.ts writes it), message, cause (of a rejection: payout for its own data, else account), maxRejections (of
--   that cause), maxUnknowns, blockedReason ('' = the response does not look like a block), inFlightMs (how long the
--   request may still be on its way, if there is no response: its sender has reset it), found ('' = it is the attempt's
--   own response; else the gateway was asked for the payment: the reason for the history)
-- Returns: {1, reason of the pause made now or ''}, {0, state} this attempt was already recorded or decided, {2, state}
--   recorded as a late payment, {-8, payoutId} the gatewayId belongs to that payout: call again with its record
local record, otherRecord, bucket = unpack(KEYS, OWN + 1, OWN + 3)
attempt = tonumber(attempt)
local is_response = found == ''
publish_pending(account.pendingEvent)
local payout = open(record)
if not payout or not knows(payout, attempt, token) then return { 0, payout and payout.state or '' } end
local from = payout.state
local is_newest = payout.attempt == attempt
-- Its own response is about to come, and may say something else.
if not is_response and is_newest and from == 'sending' then return { 0, from } end

local unanswered, last, is_counted = unpack(redis.call('HMGET', SENDER, 'unanswered', 'last', 'isCounted'))

-- A payment that was found decides nothing about pace: who waits for the response of its request waits on.
local function clear_unanswered()
  if is_response and unanswered == token then redis.call('HSET', SENDER, 'unanswered', '') end
end

-- The sender has reset the request: this host sends nothing of it any more, and only the network may still have it.
local function end_resends()
  if unanswered == token then redis.call('HSET', SENDER, 'inFlightMs', inFlightMs) end
  local untilMs = now_ms() + inFlightMs
  local before = tonumber(redis.call('HGET', record, 'inFlightUntil') or untilMs)
  redis.call('HSET', record, 'inFlightUntil', math.min(untilMs, before))
end

local has_response = to ~= 'unknown'
local answer = answer_of(token, to, gatewayId)
-- Later decisions stay.
if has_response and payout.answer == answer then
  clear_unanswered()
  return { 0, from }
end

-- The last send knows whether it counted; others have to look.
local may_count = last ~= token or is_counted ~= '0'
if has_response and may_count then note_spent(token, to == 'in_progress' and 'accepted' or 'unpaid', at) end

-- An acceptance, even of an earlier attempt, refutes a statement that nothing was sent: it must not be sent again.
local late = (is_newest and from == 'unknown' and to ~= 'unknown')
  or ((from == 'queued' or from == 'held') and to == 'in_progress')
if not late and not (is_newest and from == 'sending') then
  if has_response then clear_unanswered() end
  if not has_response and is_newest and from == 'unknown' and payout.overlap < attempt then end_resends() end
  if to ~= 'in_progress' or is_same_gateway_id(payout.gatewayId, gatewayId) then return { 0, from } end
  -- One gatewayId for two payouts: recorded before, with that reason.
  local holder = gateway_id_holder(bucket, gatewayId)
  if holder and holder ~= payout.id and from == 'unknown' then return { 0, from } end
  note_late_payment(payout, gatewayId, txhash, at)
  return { 2, from }
end

if from == 'unknown' and to == 'rejected' and payout.overlap >= attempt then
  clear_unanswered()
  return { 0, from }
end

-- Before its record has it: a repetition finds the entry, and completes it.
local holder = to == 'in_progress' and claim_gateway_id(bucket, gatewayId, payout.id)
if holder then
  if string.sub(otherRecord, #PAYOUT_PREFIX + 1) ~= holder then return { -8, holder } end
  to, message = 'unknown', 'the gateway gave the payment of payout ' .. holder .. ': ' .. gatewayId
  local other = open(otherRecord)
  local reason = 'the gateway gave the same payment to payout ' .. payout.id
  if other and other.state == 'in_progress' then
    move(other, 'unknown', at, '', reason, { 'message', reason })
  end
  if from == 'unknown' then
    redis.call('HSET', record, 'message', message, 'answer', answer)
    clear_unanswered()
    return { 1, '' }
  end
end

-- The breaker's counts and its pause are one write; `counted` keeps a repeated call from counting twice.
local reason = ''
local counted = token .. ' ' .. to
local rejections = { account = tonumber(account.rejectionsInARow or 0), payout = tonumber(account.payoutRejectionsInARow or 0) }
local unknowns = tonumber(account.unknownsInARow or 0)
local had_counts = rejections.account ~= 0 or rejections.payout ~= 0 or unknowns ~= 0
local fields = {}
if is_response and account.counted ~= counted then
  reason = blockedReason
  if to == 'in_progress' then
    rejections, unknowns = { account = 0, payout = 0 }, 0
  elseif to == 'rejected' then
    rejections[cause], unknowns = rejections[cause] + 1, 0
    if reason == '' and rejections[cause] >= tonumber(maxRejections) then
      local named = cause == 'payout' and 'for their own data: correct where these payouts come from, ' or ''
      reason = rejections[cause] .. ' rejections in a row, ' .. named .. 'the last: ' .. message
    end
  else
    unknowns = unknowns + 1
    if reason == '' and unknowns >= tonumber(maxUnknowns) then
      reason = unknowns .. ' sends in a row without a trustworthy response, the last: ' .. message
    end
  end
  if reason ~= '' then fields = paused_fields(at, 'worker', reason) end
  if not fields then reason, fields = '', {} end
  -- An acceptance that resets nothing changes nothing when it is counted twice.
  if #fields > 0 or to ~= 'in_progress' or had_counts then
    redis.call('HSET', LEDGER, 'counted', counted, 'rejectionsInARow', rejections.account, 'payoutRejectionsInARow',
      rejections.payout, 'unknownsInARow', unknowns, unpack(fields))
  end
end

fields = has_response and { 'answer', answer } or {}
if message == '' then
  if payout.hasMessage then redis.call('HDEL', record, 'message') end
else
  fields[#fields + 1] = 'message'
  fields[#fields + 1] = message
end
if to == 'in_progress' then
  -- Together: the transaction of another payment must not stay.
  for _, value in ipairs({ 'gatewayId', gatewayId, 'txhash', txhash }) do fields[#fields + 1] = value end
elseif to == 'unknown' then
  fields[#fields + 1] = 'inFlightUntil'
  fields[#fields + 1] = now_ms() + inFlightMs
end
move(payout, to, at, '', is_response and message or found, fields)
-- Clear it last: while it is set, the next lease holder waits for a request that may be on its way.
if has_response then clear_unanswered() else end_resends() end
if reason ~= '' then publish('paused', at, 'worker', reason) end
return { 1, reason }
