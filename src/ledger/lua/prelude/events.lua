-- The number of operator acts that are kept, approximately.
local KEPT_ACTS = 10000

-- A script with one act for many payouts sets this and records the act itself, once.
local is_one_act = false

-- Of the acts that the script records: the key of the operator's signed act, and what a bulk command chose its payouts
-- by, such as `batch june` ('' = none).
local act_key, act_source = '', ''

-- `act`: JSON, '' = none. Someone may have stored another text.
local function use_act(act)
  local is_json, value = pcall(cjson.decode, act)
  act_key = is_json and type(value) == 'table' and type(value.by) == 'string' and value.by or ''
end

-- Counts what people did. A ledger with fewer acts than a send journal has noted is an older copy. So is one whose count
-- is no number, which must not keep people from acting.
local function count_act()
  redis.pcall('HINCRBY', LEDGER, 'acts', 1)
end

-- `since`: the id of the entry that it replaces, or ''.
local function append_act(kind, payoutId, from, to, at, by, reason, count, since)
  -- A process whose Redis came back older objects: that is no act, and must not hide that one is missing. Nor is a comment, whose
  -- loss harms no money.
  if kind ~= 'objection' and kind ~= 'comment' then count_act() end
  -- Who made another type of the key could otherwise keep people from stopping a payout. The count stands without it.
  redis.pcall('XADD', ACTIVITY, 'MAXLEN', '~', KEPT_ACTS, '*', 'type', kind, 'payoutId', payoutId, 'from', from,
    'to', to, 'at', at, 'by', by, 'reason', reason, 'count', count, 'since', since, 'key', act_key, 'source', act_source)
end

-- `attempt`: the payout's, '' for an event of the account. With payoutId and `to` it identifies a change, also after a
-- failover, which gives the same change another place in the stream.
-- `is_noted`: an interrupted script has recorded the act.
-- Returns: the event's id
local function append_event(kind, payoutId, from, to, at, by, reason, attempt, is_noted)
  -- Write the act first: an event then never lacks its act.
  if by ~= '' and not is_one_act and not is_noted then append_act(kind, payoutId, from, to, at, by, reason, 1, '') end
  -- A record that someone altered may have any number.
  if attempt ~= '' then attempt = math.floor(attempt) end
  -- Redis stores entries with the same fields compactly.
  return redis.call('XADD', EVENTS, '*', 'type', kind, 'payoutId', payoutId, 'from', from, 'to', to,
    'at', at, 'by', by, 'reason', reason, 'attempt', attempt)
end

-- How far to search for an entry of an interrupted script: 3 ms for events, a third of that for the rarer acts.
local SEARCHED_EVENTS = 1000
local SEARCHED_ACTS = 300

local function has_event(stream, kind, payoutId, to, at)
  local searched = stream == ACTIVITY and SEARCHED_ACTS or SEARCHED_EVENTS
  for _, event in ipairs(redis.pcall('XREVRANGE', stream, '+', '-', 'COUNT', searched)) do
    local field = event[2]
    if field[2] == kind and field[4] == payoutId and field[8] == to and field[10] == at then return true end
  end
  return false
end

-- Appends an event unless an interrupted script has.
local function append_missing_event(kind, payoutId, from, to, at, by, reason, attempt)
  if has_event(EVENTS, kind, payoutId, to, at) then return end
  append_event(kind, payoutId, from, to, at, by, reason, attempt, by ~= '' and has_event(ACTIVITY, kind, payoutId, to, at))
end

-- Records one act for many payouts. The successive calls of one command count as one act.
local ONE_ACT_MS = 60000

local function note_act(from, to, at, by, reason, count)
  local last = redis.pcall('XREVRANGE', ACTIVITY, '+', '-', 'COUNT', 1)[1]
  local field = last and last[2]
  local continues = field and field[2] == 'state' and field[4] == '' and field[6] == from and field[8] == to
    and field[12] == by and field[14] == reason and field[20] == act_key and field[22] == act_source
    and math.abs(at - field[10]) < ONE_ACT_MS
  if not continues then
    append_act('state', '', from, to, at, by, reason, count, '')
    return
  end
  append_act('state', '', from, to, at, by, reason, count + field[16], field[18] == '' and last[1] or field[18])
  redis.call('XDEL', ACTIVITY, last[1])
end
