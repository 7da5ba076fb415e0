-- Keeps one key's signed approval or rejection of a payout. It grants nothing: every reader verifies it.
-- A key's later decision replaces its earlier one, but an approval never replaces a rejection.
-- KEYS: the payout's record
-- ARGV: at (when it was signed, ms), decision (approve, reject), by (the name of the key), reason ('' = none), approval
--   (the signed approval, JSON), the most approvals of one payout
-- Returns: 1 kept now or before, {-7} no such payout, {-6, state, attempt} neither queued nor held, {-20, by} the key
--   rejected the payout before, {-21, count} it has the most approvals already
local record = KEYS[OWN + 1]
local at, decision, by, reason, approval, most = unpack(ARGV)
local FIELD = 'approval:'
local payout = open(record)
if not payout then return { -7 } end
if payout.state ~= 'queued' and payout.state ~= 'held' then return { -6, payout.state, payout.attempt } end

-- Someone may have stored text that is not JSON; it protects nothing.
local function is_rejection(text)
  local is_json, value = pcall(cjson.decode, text)
  return is_json and type(value) == 'table' and value.decision == 'reject'
end

local function count_approvals()
  local count = 0
  for _, field in ipairs(redis.call('HKEYS', record)) do
    if string.sub(field, 1, #FIELD) == FIELD then count = count + 1 end
  end
  return count
end

local stored = redis.call('HGET', record, FIELD .. by)
local is_there = stored == approval
if stored and not is_there and decision ~= 'reject' and is_rejection(stored) then return { -20, by } end
if not stored then
  local count = count_approvals()
  if count >= tonumber(most) then return { -21, count } end
end
-- Mark first: an interrupted script then leaves at worst a needless check.
redis.call('SADD', RECHECK, payout.id)
-- The count blocks a send that was permitted without this decision. A repetition is not counted: anyone who saw the
-- approval could otherwise hold up the queue with it.
if not is_there then redis.call('HSET', record, 'decisions', payout.decisions + 1, FIELD .. by, approval) end
local append = is_there and append_missing_event or append_event
append('approval', payout.id, '', decision, at, by, reason, payout.attempt)
return 1
