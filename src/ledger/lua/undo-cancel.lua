-- Accepts the payment of a payout that a person cancelled unsent as a new payout, which is sent like any other. The
-- cancelled one stays as it is: its application was told that it is over.
-- KEYS: the record of the cancelled payout, the record of the new one, the new one's bucket of removed ids, its batch if it
--   has one
-- ARGV: at, by, reason, oneAct (1 if it is one of many in one act of an operator, else 0), batch ('' = none), since (ms:
--   one that was cancelled before is left)
-- Returns: 1 accepted now or before, {-7} no such payout, {-6, state, attempt} it is not cancelled, {-25, why} its payment
--   may not be repeated, or the new id has another use: a word
local record = KEYS[OWN + 2]
is_one_act = oneAct == '1'
local cancelled = open(KEYS[OWN + 1])
if not cancelled then return { -7 } end
if cancelled.state ~= 'cancelled' then return { -6, cancelled.state, cancelled.attempt } end

local COPIED = { 'paymentId', 'amount', 'addressTo', 'symbol', 'priority', 'notBefore', 'reference', 'metadata',
  'requestedBy', 'batch' }
local given = redis.call('HMGET', cancelled.record, unpack(COPIED))

-- To open it completes what an interrupted script began.
if redis.call('HEXISTS', record, 'state') == 1 and open(record) then
  for i, value in ipairs(redis.call('HMGET', record, unpack(COPIED))) do
    if value ~= given[i] then return { -25, 'taken' } end
  end
  return 1
end
if redis.call('HEXISTS', KEYS[OWN + 3], string.sub(record, #PAYOUT_PREFIX + 1)) == 1 then return { -25, 'taken' } end

-- A rejection is of the payoutId, and a signature too: neither may be lost by a new one.
local function refusal()
  local began = cancelled.attempt ~= 0 or #cancelled.tokens > 0 or cancelled.gatewayId or cancelled.told or
    redis.call('HEXISTS', cancelled.record, 'lateGatewayId') == 1
  if began then return 'begun' end
  for _, field in ipairs(redis.call('HKEYS', cancelled.record)) do
    if string.sub(field, 1, 10) == 'rejection:' then return 'rejected' end
  end
  if redis.call('HEXISTS', cancelled.record, 'sig') == 1 then return 'signed' end
  local last = redis.call('HGET', cancelled.record, 'h' .. (cancelled.n - 1))
  local ended_at, _, ended_by = read_history_entry(last)
  if ended_by == '' then return 'by_application' end
  -- An adoption made it, or ended it again: what happened before, this ledger does not know.
  local _, before = read_history_entry(redis.call('HGET', cancelled.record, 'h' .. (cancelled.n - 2)) or '')
  if redis.call('HEXISTS', cancelled.record, 'adopted') == 1 or not UNSENT[before] then return 'restored' end
  if tonumber(ended_at) < tonumber(since) then return 'late' end
  -- The journal may know a send of it that this ledger forgot. A worker that has the cancellation compared both first.
  if redis.call('EXISTS', OBJECTIONS) == 1 then return 'objected' end
  if redis.call('ZSCORE', UNKEPT, cancelled.id) then return 'unkept' end
  if (given[#COPIED] or '') ~= batch then return 'changed' end
end
local why = refusal()
if why then return { -25, why } end

local fields = { 'attempt', 0 }
for i, name in ipairs(COPIED) do
  if given[i] then
    fields[#fields + 1] = name
    fields[#fields + 1] = given[i]
  end
end
local id = string.sub(record, #PAYOUT_PREFIX + 1)
local seq = redis.call('HINCRBY', LEDGER, 'seq', 1)
if is_one_act then note_act('cancelled', 'queued', at, by, reason, 1) end
if batch ~= '' then redis.call('ZADD', KEYS[OWN + 4], seq, id) end
create(record, 'queued', at, by, 'cancelled as ' .. cancelled.id .. ': ' .. reason, fields, seq)
return 1
