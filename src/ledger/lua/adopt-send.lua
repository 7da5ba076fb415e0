-- Reconciles one journaled send with a ledger that may have forgotten it.
-- KEYS: the payout's record, its bucket of removed ids, the bucket of the gatewayId if there is one
-- ARGV: at, by, reason, inFlightMs (how long its request may still be on its way), attempt, token, outcome ('' = no
--   trustworthy one, accepted, rejected), detail (its gatewayId or message), txhash (as toTxhashField in
--   payout-record.ts writes it), then field, value, … of the payout as it was sent
-- Returns: the payout's new state, '' if nothing had to be done
local record, removed, bucket = unpack(KEYS, OWN + 1, OWN + 3)
attempt = tonumber(attempt)
local payout = open(record)
if not payout and redis.call('HEXISTS', removed, string.sub(record, #PAYOUT_PREFIX + 1)) == 1 then return '' end

local to, fields = 'unknown', { 'message', reason }
if outcome == 'rejected' then
  to, fields = 'rejected', { 'message', detail, 'answer', answer_of(token, 'rejected', '') }
elseif outcome == 'accepted' then
  local holder = gateway_id_holder(bucket, detail)
  if holder and holder ~= string.sub(record, #PAYOUT_PREFIX + 1) then
    fields = { 'message', 'the gateway gave the payment of payout ' .. holder .. ': ' .. detail }
  else
    to, fields = 'in_progress', { 'gatewayId', detail, 'txhash', txhash, 'answer', answer_of(token, 'in_progress', detail) }
  end
end
if to == 'unknown' then
  fields[#fields + 1] = 'inFlightUntil'
  fields[#fields + 1] = now_ms() + inFlightMs
end

-- Only if the payout gets the gatewayId: a bucket entry without it would keep the gatewayId from its owner.
local function claim()
  if to == 'in_progress' then claim_gateway_id(bucket, detail, string.sub(record, #PAYOUT_PREFIX + 1)) end
end

if not payout then
  -- The journal lacks the application's other fields; enqueueing the payout again adds them.
  local all = { 'attempt', attempt, 'tokens', tokens_with({ tokens = {} }, attempt, token), 'adopted', 1 }
  for _, value in ipairs(fields) do all[#all + 1] = value end
  for i = REST + 1, #ARGV do all[#all + 1] = ARGV[i] end
  claim()
  create(record, to, at, by, reason, all)
  return to
end

if knows(payout, attempt, token) then
  -- The send is known; its outcome may not be.
  local late = payout.attempt == attempt and (payout.state == 'sending' or payout.state == 'unknown')
  if not late and outcome == 'accepted' and not is_same_gateway_id(payout.gatewayId, detail) then
    note_late_payment(payout, detail, txhash, at)
  end
  if not late or to == 'unknown' then return '' end
  if payout.state == 'unknown' and to == 'rejected' and payout.overlap >= attempt then return '' end
  claim()
  move(payout, to, at, by, reason, fields)
  return to
end
local newest = math.max(payout.attempt, attempt)
local known = { 'attempt', newest, 'tokens', tokens_with(payout, attempt, token) }
local is_open = payout.state == 'sending' or payout.state == 'unknown'
-- Several senders made attempts, and one outcome is unknown: a rejection says nothing about the others.
if is_open or (to == 'unknown' and payout.attempt > 0) then
  known[#known + 1] = 'overlap'
  known[#known + 1] = newest
end
if payout.state == to or not ALLOWED[payout.state][to] or (is_open and to == 'rejected') then
  -- Record the proof first: once the send is known, no journal brings it again.
  if outcome == 'accepted' then note_late_payment(payout, detail, txhash, at) end
  if payout.state == 'unknown' and to == 'unknown' then
    known[#known + 1] = 'inFlightUntil'
    known[#known + 1] = math.max(tonumber(redis.call('HGET', record, 'inFlightUntil') or 0), now_ms() + inFlightMs)
  end
  redis.call('HSET', record, unpack(known))
  return ''
end
for _, value in ipairs(fields) do known[#known + 1] = value end
claim()
move(payout, to, at, by, reason, known)
return to
