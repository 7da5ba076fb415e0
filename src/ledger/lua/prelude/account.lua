-- `lease`: its fields, if the caller has read them.
local function holds_lease(owner, epoch, lease)
  lease = lease or redis.call('HMGET', SENDER, 'owner', 'epoch', 'released')
  return lease[1] == owner and lease[2] == epoch and lease[3] == '0'
end

-- A change of the account and its event are two writes. Between them `pendingEvent` lets the next script complete the event.
local UNPAUSED = { 'pausedReason', 'pausedBy', 'pausedAt', 'morePauses', 'rejectionsInARow', 'payoutRejectionsInARow',
  'unknownsInARow' }

local function pending_event(kind, at, by, reason)
  return kind .. '\t' .. at .. '\t' .. by .. '\t' .. reason
end

local function publish(kind, at, by, reason)
  append_event(kind, '', '', '', at, by, reason, '')
  redis.call('HDEL', LEDGER, 'pendingEvent')
end

local function publish_pending(text)
  if not text then return end
  local kind, at, by, reason = string.match(text, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$')
  if kind == 'resumed' then redis.call('HDEL', LEDGER, unpack(UNPAUSED)) end
  append_missing_event(kind, '', '', '', at, by, reason, '')
  redis.call('HDEL', LEDGER, 'pendingEvent')
end

-- Each who paused the account has one pause. The oldest is in fields of its own, the others in `morePauses` (JSON).
local function read_pauses()
  local field = redis.call('HMGET', LEDGER, 'pausedReason', 'pausedBy', 'pausedAt', 'morePauses')
  if not field[1] then return {} end
  local pauses = { { reason = field[1], by = field[2] or '', at = field[3] or '' } }
  for _, pause in ipairs(field[4] and cjson.decode(field[4]) or {}) do pauses[#pauses + 1] = pause end
  return pauses
end

-- Returns: the fields that have one pause more, nil if `by` has one already (its first reason stays).
local function paused_fields(at, by, reason)
  local pauses = read_pauses()
  if #pauses == 0 then
    return { 'pausedReason', reason, 'pausedBy', by, 'pausedAt', at, 'pendingEvent', pending_event('paused', at, by, reason) }
  end
  local more = {}
  for i, pause in ipairs(pauses) do
    if pause.by == by then return nil end
    if i > 1 then more[#more + 1] = pause end
  end
  more[#more + 1] = { reason = reason, by = by, at = at }
  return { 'morePauses', cjson.encode(more), 'pendingEvent', pending_event('paused', at, by, reason) }
end

-- Records the outcome, accepted or unpaid, of a send that a policy counts. Repeating it is harmless.
local function note_spent(token, kind, at)
  if redis.call('EXISTS', SPENT) == 0 then return end
  redis.call('XADD', SPENT, '*', 'token', token, 'kind', kind, 'at', at, 'spend', '')
end
