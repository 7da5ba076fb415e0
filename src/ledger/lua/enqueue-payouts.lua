-- Accepts payouts. An existing or removed payoutId is left as it is, except that a newer signature may replace the old.
-- KEYS: for each payout its record, its bucket of removed ids, and its batch if it has one
-- ARGV: at, then as texts that are ordered by time: at, and the latest time at which a signature counts as issued. Then for
--   each payout: 1 if it has a batch, else 0, 1 if the caller made or verified its signature, else 0, number of fields × 2,
--   field, value, …
-- Returns a list: for each payout 1 if accepted now, the existing record (field, value, …), or the final state before
--   it was removed
local at, at_text, latest = ARGV[1], ARGV[2], ARGV[3]

local IDENTITY = { 'paymentId', 'amount', 'addressTo', 'symbol', 'priority', 'notBefore', 'reference', 'metadata' }
local SIGNATURE = { 'key', 'sig', 'sigRest', 'iat', 'exp', 'aud', 'audRest', 'audRest2', 'audRest3', 'requestedBy' }

-- Approvals of the former intent do not cover the new one. Rejections are of the payoutId: they stay.
local function drop_approvals(record)
  for _, field in ipairs(redis.call('HKEYS', record)) do
    if string.sub(field, 1, 9) == 'approval:' then redis.call('HDEL', record, field) end
  end
end

-- Returns: the kind of check that holds a payout, or nil
local function held_kind(payout)
  if payout.state ~= 'held' then return nil end
  local is_json, held = pcall(cjson.decode, redis.call('HGET', payout.record, 'held') or '')
  return is_json and type(held) == 'table' and held.kind
end

-- Whether a signature that nobody verified here would replace one that may count. Otherwise a token with the right to
-- enqueue, and no key, could put junk in the place of the owner's signature, and drop the approvals with it.
local function may_count(payout, issued, given)
  if issued > latest then return false end
  if issued >= given.iat then return true end
  if given.isVerified then return false end
  local kind = held_kind(payout)
  if kind == 'signature' or kind == 'journal' then return false end
  return (redis.call('HGET', payout.record, 'exp') or '') > at_text
end

-- Takes a new signature of the same payout before any attempt: the old one may have expired, or there was none. A
-- payout held for that is checked again. Reading an old signed file again must not restore its older signature.
local function renew(payout, is_verified, first, last)
  local given = { isVerified = is_verified }
  for i = first, last, 2 do given[ARGV[i]] = ARGV[i + 1] end
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
  if payout.state == 'held' and held_kind(payout) ~= 'rejection' then
    move(payout, 'queued', at, '', 'signed again', { 'round', next_round(payout) })
  end
end

-- Completes a payout that an adoption created, with the application's other fields.
local function fill_in(record, first, last, batch)
  if redis.call('HEXISTS', record, 'adopted') == 0 then return end
  for i = first, last, 2 do
    local stored = redis.call('HGET', record, ARGV[i])
    if stored and stored ~= ARGV[i + 1] then return end
  end
  if batch then
    local payoutId = string.sub(record, #PAYOUT_PREFIX + 1)
    redis.call('ZADD', batch, 'NX', redis.call('HINCRBY', LEDGER, 'seq', 1), payoutId)
  end
  redis.call('HSET', record, unpack(ARGV, first, last))
  redis.call('HDEL', record, 'adopted')
end

local results = {}
local i, k = 4, OWN + 1
while i <= #ARGV do
  local has_batch, is_verified, count = ARGV[i] == '1', ARGV[i + 1] == '1', tonumber(ARGV[i + 2])
  local first, last = i + 3, i + 2 + count
  local record, bucket, batch = KEYS[k], KEYS[k + 1], has_batch and KEYS[k + 2]
  local payout = open(record)
  -- Read the bucket each time. A mark in another key that there are any could be deleted; removed payouts would then be
  -- paid again.
  local removed = not payout and redis.call('HGET', bucket, string.sub(record, #PAYOUT_PREFIX + 1))
  if payout then
    fill_in(record, first, last, batch)
    renew(payout, is_verified, first, last)
    results[#results + 1] = redis.call('HGETALL', record)
  elseif removed then
    results[#results + 1] = removed
  else
    local seq = redis.call('HINCRBY', LEDGER, 'seq', 1)
    if batch then redis.call('ZADD', batch, seq, string.sub(record, #PAYOUT_PREFIX + 1)) end
    create(record, 'queued', at, '', '', { 'attempt', 0, unpack(ARGV, first, last) }, seq)
    results[#results + 1] = 1
  end
  i, k = last + 1, k + (has_batch and 3 or 2)
end
return results
