-- Moves payouts from a state that the caller expects: cancel, hold, retry, resolve, the end of a transaction. A refused
-- payout does not stop the others.
-- KEYS: for each payout its record, and the bucket of its gatewayId if it has one
-- ARGV: at, from, to (`cancelled` makes a payout `written_off` that was or may have been paid), by, reason, oneAct (1 if the payouts are one act of an
--   operator, else 0), source (what a bulk command chose them by, '' = none), then for each payout: the attempt
--   that was decided about ('' = any), a gatewayId ('' = none; if `to` is in_progress, its own from now on; else the one whose
--   status decides), the operator's signed act (JSON; '' = none), number of fields × 2, field, value, … to set with it (of a
--   hold: held and byHand)
-- Returns a list: for each payout 1 done, {-7} no such payout, {-6, state, attempt} it is in another state, {-8,
--   payoutId} the gatewayId belongs to another payout, {-11, ms} a request may still be on its way for so long, {-12,
--   attempt} this attempt was begun, or its gatewayId replaced, since, {-13, gatewayId} it was paid as this
-- A person also holds what a rule holds, which the rule would let pass by itself.
local holds_held = from == 'held' and to == 'held' and by ~= ''
if not ALLOWED[from][to] and not holds_held then error('no transition from ' .. from .. ' to ' .. to) end
is_one_act, act_source = oneAct == '1', source

-- Read all arguments before the first write: a call that names a payout twice changes nothing.
local changes, named = {}, {}
local i, k = REST + 1, OWN + 1
while i <= #ARGV do
  local attempt, gatewayId, act, field_count = unpack(ARGV, i, i + 3)
  local record = KEYS[k]
  if named[record] then error(string.sub(record, #PAYOUT_PREFIX + 1) .. ' is named twice') end
  named[record] = true
  changes[#changes + 1] = {
    record = record, attempt = attempt, gatewayId = gatewayId, act = act,
    bucket = KEYS[k + 1], fields = { unpack(ARGV, i + 4, i + 3 + field_count) },
  }
  i, k = i + 4 + field_count, k + (gatewayId == '' and 1 or 2)
end

-- The payments that payouts of this call get: key → payoutId.
local claimed = {}

-- `attempt`: the one that was decided about, '' = any.
-- Returns: nil if the payout may be moved, 1 if it was moved so before, or why it may not: {code, …}
local function check_change(payout, attempt)
  if payout.state ~= from then
    -- The same change, repeated because its reply was lost.
    local entry = redis.call('HGET', payout.record, 'h' .. (payout.n - 1))
    local _, last, lastBy, lastReason = read_history_entry(entry)
    local is_same = last == to or (to == 'cancelled' and last == 'written_off')
    if by ~= '' and is_same and lastBy == by and lastReason == reason then return 1 end
    return { -6, payout.state, payout.attempt }
  end
  if attempt ~= '' and tonumber(attempt) ~= tonumber(payout.attempt) then return { -12, payout.attempt } end
end

-- Whether an operator may requeue a payout. Returns nil, or why not: {code, …}
local function check_requeue(payout)
  local lateGatewayId = redis.call('HGET', payout.record, 'lateGatewayId')
  if lateGatewayId then return { -13, lateGatewayId } end
  local waitMs = payout.state == 'unknown' and in_flight_left(payout.record) or 0
  if waitMs > 0 then return { -11, waitMs } end
end

-- It was paid late, or a send journal has an attempt of it, or that it ended before, perhaps written off. Anyone may have
-- altered the text.
local function may_be_paid(record)
  if redis.call('HEXISTS', record, 'lateGatewayId') == 1 then return true end
  if from ~= 'held' then return false end
  local is_json, held = pcall(cjson.decode, redis.call('HGET', record, 'held') or '')
  return is_json and type(held) == 'table' and held.kind == 'journal' and
    (held.reason == 'sent_before' or held.reason == 'ended_before')
end

-- Returns: as check_change
local function check(change)
  local payout = change.payout
  if not payout then return { -7 } end
  local refusal = check_change(payout, change.attempt)
  -- A repeated change may bring a signature that the first one lacked.
  if refusal == 1 and change.act ~= '' then redis.call('HSET', payout.record, 'act', change.act) end
  if refusal then return refusal end
  -- A status that comes late, when an operator has given another gatewayId.
  if from == 'in_progress' and change.gatewayId ~= '' and
      not is_same_gateway_id(payout.gatewayId, change.gatewayId) then
    return { -12, payout.attempt }
  end
  local key = change.gatewayId ~= '' and to == 'in_progress' and gateway_id_key(change.gatewayId)
  local holder = key and (claimed[key] or gateway_id_holder(change.bucket, change.gatewayId))
  if holder and holder ~= payout.id then return { -8, holder } end
  -- The policy was asked before a person held it.
  if to == 'queued' and by == '' and held_by_hand(payout) then return { -6, payout.state, payout.attempt } end
  refusal = to == 'queued' and check_requeue(payout)
  if refusal then return refusal end
  if key then claimed[key] = payout.id end
  -- `cancelled` says that nothing was paid.
  change.to = to == 'cancelled' and may_be_paid(change.record) and 'written_off' or to
end

local function apply(change)
  local payout, gatewayId, bucket, fields = change.payout, change.gatewayId, change.bucket, change.fields
  local function set(field, value)
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if holds_held then
    -- Write the act first, as for all.
    if not is_one_act then append_act('state', payout.id, from, to, at, by, reason, 1, '') end
    -- Another check says what to do, and whether it may have been paid.
    local kind = held_kind(payout)
    if kind ~= 'policy' and kind ~= 'person' then fields = { fields[3], fields[4] } end
    redis.call('HSET', payout.record, unpack(fields))
    return
  end
  if change.act ~= '' then set('act', change.act) end
  if to == 'queued' then set('round', next_round(payout)) end
  if gatewayId ~= '' and to == 'in_progress' then
    set('gatewayId', gatewayId)
    claim_gateway_id(bucket, gatewayId, payout.id)
  elseif gatewayId ~= '' and to == 'unknown' and gateway_id_holder(bucket, gatewayId) == payout.id then
    -- Its real payout may then claim it.
    release_gateway_id(bucket, gatewayId)
  end
  move(payout, change.to, at, by, reason, fields)
end

local replies, accepted = {}, {}
for place, change in ipairs(changes) do
  change.payout = open(change.record)
  local refusal = check(change)
  replies[place] = refusal or 1
  if not refusal then accepted[#accepted + 1] = change end
end
-- Write the activity entry first: an interrupted script may then over-report, but never under-report.
if #accepted > 0 then use_act(accepted[1].act) end
if is_one_act and #accepted > 0 then note_act(from, to, at, by, reason, #accepted) end
for _, change in ipairs(accepted) do apply(change) end
return replies
