-- Keeps a signed decision about a payout: an approval, a rejection, or what takes a rejection back. It grants nothing:
-- every reader verifies it. A rejection holds the payout at once, and no later decision takes its place.
-- KEYS: the payout's record
-- ARGV: at (when it was signed, ms), decision (approve, reject, unreject), by (the name of the key), reason ('' = none),
--   field (of the decision), approval (the signed decision, JSON), most (approvals, and rejections, of one payout), held
--   (JSON: with which a rejection holds it), source (what a command for many chose them by, '' = none)
-- Returns: 1 kept now or before, {-7} no such payout, {-6, state, attempt} neither queued nor held, {-20, by} a
--   rejection by the key stands, {-21, count} it has the most already
act_source = source
local record = KEYS[OWN + 1]
local payout = open(record)
if not payout then return { -7 } end
if payout.state ~= 'queued' and payout.state ~= 'held' then return { -6, payout.state, payout.attempt } end

-- Someone may have stored text that is not JSON; it protects nothing.
local function read(text)
  local is_json, value = pcall(cjson.decode, text or '')
  return is_json and type(value) == 'table' and value or {}
end

local function fields_of(kind)
  local found = {}
  for _, name in ipairs(redis.call('HKEYS', record)) do
    if string.sub(name, 1, #kind + 1) == kind .. ':' then found[#found + 1] = name end
  end
  return found
end

local function standing_rejections()
  local taken = {}
  for _, name in ipairs(fields_of('unrejection')) do
    taken[string.match(name, '^un(rejection:[^:]*)') or ''] = true
  end
  local standing = {}
  for _, name in ipairs(fields_of('rejection')) do
    if not taken[name] then standing[#standing + 1] = name end
  end
  return standing
end

local stored = redis.call('HGET', record, field)
local is_there = stored == approval
if decision == 'approve' then
  for _, name in ipairs(standing_rejections()) do
    if read(redis.call('HGET', record, name)).by == by then return { -20, by } end
  end
end
if not stored then
  local count = #fields_of(string.match(field, '^[^:]*'))
  if count >= tonumber(most) then return { -21, count } end
end
-- Mark first: an interrupted script then leaves at worst a needless check. Of this key and UNKEPT, another type is no
-- reason to refuse a rejection.
redis.pcall('SADD', RECHECK, payout.id)
-- The count blocks a send that was permitted without this decision. A repetition is not counted: anyone who saw the
-- approval could otherwise hold up the queue with it.
if not is_there then redis.call('HSET', record, 'decisions', payout.decisions + 1, field, approval) end
local append = is_there and append_missing_event or append_event
append('approval', payout.id, '', decision, at, by, reason, payout.attempt)
if decision == 'reject' then
  -- Until a send journal has it, a Redis that comes back older would send the payout.
  redis.pcall('ZADD', UNKEPT, at, field .. ' ' .. payout.id)
  redis.call('HDEL', record, 'approval:' .. by)
  if payout.state == 'held' then
    redis.call('HSET', record, 'held', held)
  else
    move(payout, 'held', at, by, read(held).message, { 'held', held })
  end
elseif decision == 'unreject' and payout.state == 'held' and #standing_rejections() == 0 and
    read(redis.call('HGET', record, 'held')).kind == 'rejection' then
  local by_hand = held_by_hand(payout)
  if by_hand then
    redis.call('HSET', record, 'held', by_hand)
  else
    move(payout, 'queued', at, by, 'the rejection was taken back', { 'round', next_round(payout) })
  end
end
return 1
