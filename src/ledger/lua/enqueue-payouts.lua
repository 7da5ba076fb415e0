-- Accepts payouts. An existing or removed payoutId is left as it is, except that a newer signature may replace the old.
-- KEYS: for each payout its record, its bucket of removed ids, and its batch if it has one
-- ARGV: at, then as texts that are ordered by time: atText, and latest (the latest time at which a signature counts as
--   issued), payouts (1,000 at most, as one JSON text, because Redis takes long over many arguments). Of each a list: 1 if it
--   has a batch, else 0, 1 if the caller made or verified its signature, else 0, its `notBefore` ('' = none), field,
--   value, …
-- Returns a list: for each payout 1 if accepted now, the existing record (field, value, …), or the final state before
--   it was removed
-- The place of the first field in the list of a payout. Before it: whether it has a batch, whether its signature is
-- verified, its date.
local FIRST_FIELD = 4

local IDENTITY = { 'paymentId', 'amount', 'addressTo', 'symbol', 'priority', 'notBefore', 'reference', 'metadata' }
local SIGNATURE = { 'key', 'sig', 'sigRest', 'iat', 'exp', 'aud', 'audRest', 'audRest2', 'audRest3', 'requestedBy' }

-- Approvals of the former intent do not cover the new one. Rejections are of the payoutId: they stay.
local function drop_approvals(record)
  for _, field in ipairs(redis.call('HKEYS', record)) do
    if string.sub(field, 1, 9) == 'approval:' then redis.call('HDEL', record, field) end
  end
end

-- Whether a signature that nobody verified here would replace one that may count. Otherwise a token with the right to
-- enqueue, and no key, could put junk in the place of the owner's signature, and drop the approvals with it.
local function may_count(payout, issued, given)
  if issued > latest then return false end
  if issued >= given.iat then return true end
  if given.isVerified then return false end
  local kind = held_kind(payout)
  if kind == 'signature' or kind == 'journal' then return false end
  return (redis.call('HGET', payout.record, 'exp') or '') > atText
end

-- Takes a new signature of the same payout before any attempt: the old one may have expired, or there was none. A
-- payout held for that is checked again. Reading an old signed file again must not restore its older signature.
local function renew(payout, fields_given)
  local given = { isVerified = fields_given[2] == 1 }
  for i = FIRST_FIELD, #fields_given, 2 do given[fields_given[i]] = fields_given[i + 1] end
  if not given.sig or payout.attempt > 0 or not UNSENT[payout.state] or FINAL[payout.state] then return end
  local stored = redis.call('HMGET', payout.record, unpack(IDENTITY))
  for i, field in ipairs(IDENTITY) do
    if (stored[i] or nil) ~= given[field] then return end
  end
  if given.iat > latest then return end
  local issued = redis.call('HGET', payout.record, 'iat')
  if issued and may_count(payout, issued, given) then return end
  local fields = {}
  for _, field in ipairs(SIGNATURE) do
    if given[field] then
      fields[#fields + 1] = field
      fields[#fields + 1] = given[field]
    else
      redis.call('HDEL', payout.record, field)
    end
  end
  drop_approvals(payout.record)
  redis.call('HSET', payout.record, unpack(fields))
  if payout.state == 'held' and held_kind(payout) ~= 'rejection' and not held_by_hand(payout) then
    move(payout, 'queued', at, '', 'signed again', { 'round', next_round(payout) })
  end
end

-- Completes a payout that an adoption created, with the application's other fields.
local function fill_in(payout, given, batch)
  local record = payout.record
  if redis.call('HEXISTS', record, 'adopted') == 0 then return end
  for i = FIRST_FIELD, #given, 2 do
    local stored = redis.call('HGET', record, given[i])
    if stored and stored ~= given[i + 1] then return end
  end
  if batch then
    redis.call('ZADD', batch, 'NX', redis.call('HINCRBY', LEDGER, 'seq', 1), payout.id)
  end
  redis.call('HSET', record, unpack(given, FIRST_FIELD))
  if given[3] ~= '' then payout.notBefore = given[3] end
  note_date(payout)
  redis.call('HDEL', record, 'adopted')
end

-- Payouts that are new and not written yet, in order; by record whether it is among them.
local new, is_new = {}, {}

-- Writes the new payouts step by step for all of them, in half of the time that one after the other takes. Each record is
-- first, with the mark `pending`, so that the next script that opens it completes an interrupted one like any change.
local function write_new()
  local count = #new
  local before = redis.call('HINCRBY', LEDGER, 'seq', count) - count
  local entry = history_entry('queued', at, '', '')
  local index, outbox, dates = {}, {}, {}
  for i, payout in ipairs(new) do
    if payout.batch then redis.call('ZADD', payout.batch, before + i, payout.id) end
    redis.call('HSET', payout.record, 'state', 'queued', 'n', 1, 'h0', entry, 'pending', '', 'attempt', 0,
      unpack(payout.given, FIRST_FIELD))
    index[2 * i - 1], index[2 * i] = before + i, payout.id
    outbox[2 * i - 1], outbox[2 * i] = at, 'queued ' .. payout.id
    if payout.notBefore ~= '' then
      dates[#dates + 1] = 0
      dates[#dates + 1] = date_entry(payout)
    end
  end
  redis.call('ZADD', INDEX.queued, unpack(index))
  if #dates > 0 then redis.call('ZADD', SCHEDULED, unpack(dates)) end
  redis.call('ZADD', OUTBOX, unpack(outbox))
  for _, payout in ipairs(new) do
    payout.event = append_event('state', payout.id, '', 'queued', at, '', '', 0)
  end
  for _, payout in ipairs(new) do redis.call('HDEL', payout.record, 'pending') end
end

-- The caller is told that nothing is stored: then nothing may be sent. Of keys that someone altered, some cannot be
-- written here either. The records are last: without one, what is left leads to no send.
local function undo_new()
  for _, payout in ipairs(new) do
    if payout.event then redis.pcall('XDEL', EVENTS, payout.event) end
    redis.pcall('ZREM', OUTBOX, 'queued ' .. payout.id)
    if payout.notBefore ~= '' then redis.pcall('ZREM', SCHEDULED, date_entry(payout)) end
    redis.pcall('ZREM', INDEX.queued, payout.id)
    if payout.batch then redis.pcall('ZREM', payout.batch, payout.id) end
  end
  for _, payout in ipairs(new) do redis.call('DEL', payout.record) end
end

local function accept_new()
  if #new == 0 then return end
  local is_written, reason = pcall(write_new)
  if not is_written then
    undo_new()
    error(reason, 0)
  end
  new, is_new = {}, {}
end

local results = {}
local k = OWN + 1
for i, given in ipairs(cjson.decode(payouts)) do
  local has_batch = given[1] == 1
  local record, bucket, batch = KEYS[k], KEYS[k + 1], has_batch and KEYS[k + 2]
  -- Named twice in this call.
  if is_new[record] then accept_new() end
  local id = string.sub(record, #PAYOUT_PREFIX + 1)
  -- Most are new: to open a record reads many fields.
  local payout = redis.call('HEXISTS', record, 'state') == 1 and open(record)
  -- Read the bucket each time. A mark in another key that there are any could be deleted; removed payouts would then be
  -- paid again.
  local removed = not payout and redis.call('HGET', bucket, id)
  if payout then
    fill_in(payout, given, batch)
    renew(payout, given)
    results[i] = redis.call('HGETALL', record)
  elseif removed then
    results[i] = removed
  else
    new[#new + 1] = { record = record, id = id, batch = batch, given = given, notBefore = given[3] }
    is_new[record] = true
    results[i] = 1
  end
  k = k + (has_batch and 3 or 2)
end
accept_new()
return results
