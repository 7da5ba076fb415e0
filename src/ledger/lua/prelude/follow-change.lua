-- Fields that a record has only while its payout is in the state.
local OWN_FIELDS = { held = { 'held', 'byHand' } }

local function end_change(payout, from)
  redis.call('HDEL', payout.record, 'pending', unpack(OWN_FIELDS[from] or {}))
end

-- A payout that is held because someone altered it has an event of its own, and the account keeps the last one.
local function publish_tampering(payout, at, append)
  local text = redis.call('HGET', payout.record, 'held')
  local held = text and cjson.decode(text) or {}
  if not held.isTampering then return end
  append('tampering', payout.id, '', 'held', at, '', held.reason .. ': ' .. held.message, payout.attempt)
  redis.call('HSET', LEDGER, 'tampering', string.format('%.0f', at) .. ' ' .. payout.id)
end

-- Adds a payout to the index of a state that is never left.
local function append_ended(payout, seq)
  local stream = INDEX[payout.state]
  local function add() return redis.pcall('XADD', stream, string.format('%.0f-0', seq), 'payoutId', payout.id) end
  local reply = add()
  if type(reply) ~= 'table' or not reply.err then return end
  -- The counter is behind the stream, for example after the key `ledger` was deleted: continue at the stream's end.
  local facts = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #facts, 2 do
    if facts[i] == 'last-generated-id' then seq = tonumber(string.match(facts[i + 1], '^%d+')) + 1 end
  end
  redis.call('HSET', LEDGER, 'seq', string.format('%.0f', seq))
  reply = add()
  if type(reply) == 'table' and reply.err then error(reply.err) end
end

-- `seq`: its place in the index; nil for the end.
-- Returns: 1 if the index has one entry more, 0 if it had the payout, nil if its state is never left
local function enter_index(payout, seq)
  seq = seq or redis.call('HINCRBY', LEDGER, 'seq', 1)
  if not ENDED[payout.state] then return redis.call('ZADD', INDEX[payout.state], seq, payout.id) end
  append_ended(payout, seq)
end

-- A queued payout with a date, in the order of dates: all are texts of one length.
local function date_entry(payout)
  return payout.notBefore .. ' ' .. payout.id
end

local function note_date(payout)
  if payout.notBefore and payout.state == 'queued' then redis.call('ZADD', SCHEDULED, 0, date_entry(payout)) end
end

-- `from`: '' for a new payout, and any text if someone has altered `pending`.
-- Returns: 1 if the index has one entry less, 0 if it did not have the payout, nil if there is none to leave
local function leave_index(payout, from)
  if not INDEX[from] or ENDED[from] or from == payout.state then return end
  if payout.notBefore and from == 'queued' then redis.call('ZREM', SCHEDULED, date_entry(payout)) end
  return redis.call('ZREM', INDEX[from], payout.id)
end

-- Until a send journal has it, a Redis that comes back older would send the payout. Without a person there is no act.
local function note_ended(payout, at, by)
  if not KEPT[payout.state] then return end
  redis.pcall('ZADD', UNKEPT, at, payout.id)
  if by == '' then count_act() end
end

-- Updates index, outbox and event after a record changed its state. `from` is '' for a new payout.
-- The old index is last, so that a search in it finds an interrupted change.
-- Returns: those of enter_index and leave_index
local function follow(payout, from, at, by, reason, seq)
  local entered = enter_index(payout, seq)
  note_date(payout)
  if NEEDS_JOB[payout.state] then redis.call('ZADD', OUTBOX, at, payout.state .. ' ' .. payout.id) end
  note_ended(payout, at, by)
  append_event('state', payout.id, from, payout.state, at, by, reason, payout.attempt)
  if payout.state == 'held' then publish_tampering(payout, at, append_event) end
  local left = leave_index(payout, from)
  end_change(payout, from)
  return entered, left
end

-- A payout that is put back unsent keeps its place and age in the queue: `place` and `queuedSince`, else empty.
local function has_place(place)
  return place and place ~= ''
end

-- Since when a queued payout has been waiting to be sent.
local function queued_since(payout)
  if has_place(payout.queuedSince) then return payout.queuedSince end
  -- Most payouts are sent once, and were queued with their first entry.
  return (read_history_entry(payout.n == 1 and payout.h0 or redis.call('HGET', payout.record, 'h' .. (payout.n - 1))))
end

-- How far to search for an entry of an interrupted script.
local SEARCHED_ENTRIES = 1000

local function is_in_index(payout)
  if not ENDED[payout.state] then return redis.call('ZSCORE', INDEX[payout.state], payout.id) end
  for _, entry in ipairs(redis.call('XREVRANGE', INDEX[payout.state], '+', '-', 'COUNT', SEARCHED_ENTRIES)) do
    if entry[2][2] == payout.id then return true end
  end
  return false
end

-- Completes a change that an interrupted script began.
local function complete(payout, from)
  local entry, place = unpack(redis.call('HMGET', payout.record, 'h' .. (payout.n - 1), 'place'))
  local at, to, by, reason = read_history_entry(entry)
  if not is_in_index(payout) then enter_index(payout, to == 'queued' and has_place(place) and place or nil) end
  note_date(payout)
  if NEEDS_JOB[to] then redis.call('ZADD', OUTBOX, 'NX', at, to .. ' ' .. payout.id) end
  note_ended(payout, at, by)
  append_missing_event('state', payout.id, from, to, at, by, reason, payout.attempt)
  if to == 'held' then publish_tampering(payout, at, append_missing_event) end
  leave_index(payout, from)
  end_change(payout, from)
end
