-- Reads the fields that decide about a payout at once, because many reads cost more than long ones; nil if absent.
-- `answer`, `gatewayId`, `hasMessage`, `queuedSince`, `h0`: as they were before the script changed anything.
local function open(record)
  local field = redis.call('HMGET', record, 'state', 'attempt', 'tokens', 'n', 'pending', 'overlap', 'answer', 'gatewayId', 'message',
    'decisions', 'queuedSince', 'h0', 'notBefore')
  if not field[1] then return nil end
  -- What is absent counts as 0, and also what was altered and is no number: the payout can still be held.
  local attempt = tonumber(field[2]) or 0
  local payout = {
    record = record, id = string.sub(record, #PAYOUT_PREFIX + 1), state = field[1], attempt = attempt,
    tokens = read_tokens(field[3]), n = tonumber(field[4]) or 0,
    overlap = tonumber(field[6]) or 0, answer = field[7], gatewayId = field[8], hasMessage = field[9] and true or false,
    decisions = tonumber(field[10]) or 0, queuedSince = field[11], h0 = field[12], notBefore = field[13],
  }
  if field[5] then complete(payout, field[5]) end
  return payout
end

local function is_last(payout, attempt, token)
  return payout ~= nil and payout.attempt == attempt and knows(payout, attempt, token)
end

-- Returns: the kind of check that holds a payout, nil if none does
local function held_kind(payout)
  if payout.state ~= 'held' then return nil end
  local is_json, held = pcall(cjson.decode, redis.call('HGET', payout.record, 'held') or '')
  return is_json and type(held) == 'table' and held.kind or nil
end

-- Why a person holds a payout (JSON), false if none does. It stays beside every other reason, and only a person ends it.
local function held_by_hand(payout)
  return payout.state == 'held' and redis.call('HGET', payout.record, 'byHand')
end

local function field_in(fields, name, otherwise)
  for i = 1, #(fields or {}), 2 do
    if fields[i] == name then return fields[i + 1] end
  end
  return otherwise
end

-- The caller has checked the special rules of the transition; that it exists is checked here, before any write.
-- `fields`: field, value, … that change with it. `seq`: its place in the new index; nil for the end.
-- Returns: as follow
local function move(payout, to, at, by, reason, fields, seq)
  local from = payout.state
  if not ALLOWED[from][to] then error('no transition from ' .. from .. ' to ' .. to) end
  redis.call('HSET', payout.record, 'state', to, 'n', payout.n + 1, 'h' .. payout.n, history_entry(to, at, by, reason),
    'pending', from, unpack(fields or {}))
  payout.state, payout.n, payout.attempt = to, payout.n + 1, field_in(fields, 'attempt', payout.attempt)
  return follow(payout, from, at, by, reason, seq)
end

-- Makes a payout that is requeued go to the end of the queue. Returns its next round, which makes the job's id new.
local function next_round(payout)
  redis.call('HDEL', payout.record, 'place', 'queuedSince')
  return (redis.call('HGET', payout.record, 'round') or 0) + 1
end

-- `seq`: its place in the index, if the caller needs the number too.
local function create(record, state, at, by, reason, fields, seq)
  local payout = {
    record = record, id = string.sub(record, #PAYOUT_PREFIX + 1), state = state,
    attempt = field_in(fields, 'attempt', 0), notBefore = field_in(fields, 'notBefore'),
  }
  redis.call('HSET', record, 'state', state, 'n', 1, 'h0', history_entry(state, at, by, reason), 'pending', '',
    unpack(fields))
  follow(payout, '', at, by, reason, seq)
end
