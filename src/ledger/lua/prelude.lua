-- Stands before every script of this folder. The loader puts constants in front of it, made from states.ts, transitions.ts and keys.ts:
--   LEDGER, SENDER, OUTBOX, EVENTS, ACTIVITY, JOURNALS, OBJECTIONS, LATE, SPENT, RECHECK   the account's keys
--   INDEX       state → the key of its index
--   OWN         KEYS[OWN + 1] is the first key that a script takes beside the account's
--   ALLOWED     from → to → true        FINAL, NEEDS_JOB, UNSENT   state → true
--   PAYOUT_PREFIX   what a payout's key begins with
--   FORMAT      the newest version of the ledger's format that these scripts read
--   NEW_FORMAT  the version with which a new ledger is marked
--   MARKS_FORMAT   whether the script may mark a ledger that has no format yet
-- A script touches declared keys only: while a cluster moves a slot, Redis then refuses it before anything is written.
--
-- A script that ends in its middle leaves its writes behind. So a change is one HSET of the record with the mark
-- `pending`, and what follows from it (index, outbox, event) is completed by the next script that opens the record.

-- How many acts of operators are kept, about.
local KEPT_ACTS = 10000

-- Set by a script that carries out one act for many payouts: it notes the act itself, once.
local is_one_act = false

-- `since`: the id of the entry that it takes the place of; '' where it is new.
local function append_act(kind, payoutId, from, to, at, by, reason, count, since)
  return redis.call('XADD', ACTIVITY, 'MAXLEN', '~', KEPT_ACTS, '*', 'type', kind, 'payoutId', payoutId, 'from', from,
    'to', to, 'at', at, 'by', by, 'reason', reason, 'count', count, 'since', since)
end

-- `is_noted`: an interrupted script has noted who did it.
local function append_event(kind, payoutId, from, to, at, by, reason, is_noted)
  -- First: where there is the event, there is the act.
  if by ~= '' and not is_one_act and not is_noted then append_act(kind, payoutId, from, to, at, by, reason, 1, '') end
  -- The fields are always the same, which Redis stores compactly.
  redis.call('XADD', EVENTS, '*', 'type', kind, 'payoutId', payoutId, 'from', from, 'to', to,
    'at', at, 'by', by, 'reason', reason)
end

-- How many of the newest events are searched for one that an interrupted script may have appended.
local SEARCHED_EVENTS = 1000

local function has_event(stream, kind, payoutId, to, at)
  for _, event in ipairs(redis.call('XREVRANGE', stream, '+', '-', 'COUNT', SEARCHED_EVENTS)) do
    local field = event[2]
    if field[2] == kind and field[4] == payoutId and field[8] == to and field[10] == at then return true end
  end
  return false
end

-- Appends an event unless an interrupted script has.
local function append_missing_event(kind, payoutId, from, to, at, by, reason)
  if has_event(EVENTS, kind, payoutId, to, at) then return end
  append_event(kind, payoutId, from, to, at, by, reason, by ~= '' and has_event(ACTIVITY, kind, payoutId, to, at))
end

local function history_entry(to, at, by, reason)
  if by == '' and reason == '' then return at .. '\t' .. to end
  return at .. '\t' .. to .. '\t' .. by .. '\t' .. reason
end

local function read_history_entry(entry)
  local at, to, by, reason = string.match(entry, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$')
  if at then return at, to, by, reason end
  at, to = string.match(entry, '^([^\t]*)\t(.*)$')
  return at, to, '', ''
end

-- What stands in a record only as long as its payout is in the state.
local OWN_FIELDS = { held = { 'held' } }

-- The change is complete, also what belonged to the state before.
local function end_change(payout, from)
  redis.call('HDEL', payout.record, 'pending', unpack(OWN_FIELDS[from] or {}))
end

-- A payout that is held because somebody altered it has an event of its own.
local function tell_tampering(payout, at, append)
  local text = redis.call('HGET', payout.record, 'held')
  local held = text and cjson.decode(text) or {}
  if held.isTampering then append('tampering', payout.id, '', 'held', at, '', held.reason .. ': ' .. held.message) end
end

-- Brings index, outbox and event in line with a record that has come into its state. `from` is '' for a new payout.
-- The old index comes last: a search for payouts in it finds one whose change was interrupted.
local function follow(payout, from, at, by, reason, seq)
  redis.call('ZADD', INDEX[payout.state], seq or redis.call('HINCRBY', LEDGER, 'seq', 1), payout.id)
  if NEEDS_JOB[payout.state] then redis.call('ZADD', OUTBOX, at, payout.state .. ' ' .. payout.id) end
  append_event('state', payout.id, from, payout.state, at, by, reason)
  if payout.state == 'held' then tell_tampering(payout, at, append_event) end
  if from ~= '' then redis.call('ZREM', INDEX[from], payout.id) end
  end_change(payout, from)
end

-- A payout that is put back without having been sent keeps its place among the queued, and its age: `place` and
-- `queuedSince` in its record. Both are empty where it came into the queue in another way.
local function has_place(place)
  return place and place ~= ''
end

-- Since when a queued payout has been waiting to be sent.
local function queued_since(payout)
  local since, entry = unpack(redis.call('HMGET', payout.record, 'queuedSince', 'h' .. (payout.n - 1)))
  return has_place(since) and since or (read_history_entry(entry))
end

-- Completes a change that an interrupted script began.
local function complete(payout, from)
  local entry, place = unpack(redis.call('HMGET', payout.record, 'h' .. (payout.n - 1), 'place'))
  local at, to, by, reason = read_history_entry(entry)
  local seq = to == 'queued' and has_place(place) and place or redis.call('HINCRBY', LEDGER, 'seq', 1)
  redis.call('ZADD', INDEX[to], 'NX', seq, payout.id)
  if NEEDS_JOB[to] then redis.call('ZADD', OUTBOX, 'NX', at, to .. ' ' .. payout.id) end
  append_missing_event('state', payout.id, from, to, at, by, reason)
  if to == 'held' then tell_tampering(payout, at, append_missing_event) end
  if from ~= '' then redis.call('ZREM', INDEX[from], payout.id) end
  end_change(payout, from)
end

-- Stands for an attempt of format 1, which kept the epoch of the last attempt only.
local FORMER_ATTEMPT = '?'

-- A larger number is none that a version writes: nothing is done for each attempt up to it.
local MAX_ATTEMPTS = 100000

-- The tokens under which a payout's attempts began, by their numbers. Format 1 knew an attempt by its epoch.
local function read_tokens(attempt, text, epoch)
  local tokens = {}
  for word in string.gmatch(text or '', '%S+') do tokens[#tokens + 1] = word end
  for number = #tokens + 1, math.min(attempt, MAX_ATTEMPTS) do
    tokens[number] = number == attempt and epoch and 'e:' .. epoch or FORMER_ATTEMPT
  end
  return tokens
end

-- Whether the record has seen this very attempt begin. Its number alone tells nothing: after a Redis that came back
-- older, the same number is given out again.
local function knows(payout, attempt, token)
  local known = payout.tokens[attempt] or ''
  if known == FORMER_ATTEMPT then return string.sub(token, 1, 2) == 'e:' end
  for word in string.gmatch(known, '[^/]+') do
    if word == token then return true end
  end
  return false
end

-- The tokens with one more, as the record holds them. Two of one number, of two timelines, stand side by side.
local function tokens_with(payout, attempt, token)
  if attempt > MAX_ATTEMPTS then error('attempt ' .. attempt .. ' is beyond ' .. MAX_ATTEMPTS .. ', which no version writes') end
  local tokens = {}
  -- Not unpack, which Lua refuses for some thousand.
  for number, known in ipairs(payout.tokens) do tokens[number] = known end
  for number = #tokens + 1, attempt do tokens[number] = FORMER_ATTEMPT end
  local known = tokens[attempt]
  tokens[attempt] = known == FORMER_ATTEMPT and token or known .. '/' .. token
  return table.concat(tokens, ' ')
end

-- The part of a record that decides what may happen to its payout; nil where there is none. Read together, because many
-- reads cost more than long ones. `told`, `txhash`, `hasMessage`: as they were before the script changed anything.
local function open(record)
  local field = redis.call('HMGET', record, 'state', 'attempt', 'tokens', 'epoch', 'n', 'pending', 'overlap', 'told', 'txhash',
    'message')
  if not field[1] then return nil end
  local attempt = tonumber(field[2] or 0)
  local payout = {
    record = record, id = string.sub(record, #PAYOUT_PREFIX + 1), state = field[1], attempt = attempt,
    tokens = read_tokens(attempt, field[3], field[4]), n = tonumber(field[5]),
    overlap = tonumber(field[7] or 0), told = field[8], txhash = field[9], hasMessage = field[10] and true or false,
  }
  if field[6] then complete(payout, field[6]) end
  return payout
end

-- Whether an attempt is the last one of its payout.
local function is_last(payout, attempt, token)
  return payout ~= nil and payout.attempt == attempt and knows(payout, attempt, token)
end

-- Moves a payout to another state. The caller has checked what is special to its transition; that the transition exists
-- at all is checked here, before anything is written. `fields`: field, value, … that change with it. `seq`: its place in
-- the index of the new state; the last one where there is none.
local function move(payout, to, at, by, reason, fields, seq)
  local from = payout.state
  if not ALLOWED[from][to] then error('no transition from ' .. from .. ' to ' .. to) end
  redis.call('HSET', payout.record, 'state', to, 'n', payout.n + 1, 'h' .. payout.n, history_entry(to, at, by, reason),
    'pending', from, unpack(fields or {}))
  payout.state, payout.n = to, payout.n + 1
  follow(payout, from, at, by, reason, seq)
end

-- Puts in a payout that is not there. `seq`: its place in the index, where the caller needs the number too.
local function create(record, state, at, by, reason, fields, seq)
  local payout = { record = record, id = string.sub(record, #PAYOUT_PREFIX + 1), state = state }
  redis.call('HSET', record, 'state', state, 'n', 1, 'h0', history_entry(state, at, by, reason), 'pending', '',
    unpack(fields))
  follow(payout, '', at, by, reason, seq)
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- For how long, in ms, a request of a payout that is unknown may still be on its way.
local function doubt_left(record)
  local doubtUntil = redis.call('HGET', record, 'doubtUntil')
  return doubtUntil and math.max(0, tonumber(doubtUntil) - now_ms()) or 0
end

-- What the record keeps of the outcome that was told last. It is told again, in case the ledger came back without it, and
-- must not undo what was decided since.
local function told_as(token, to, txhash)
  -- A value of over 64 bytes would make Redis store the whole record at twice its size.
  return token .. ' ' .. to .. ' ' .. string.sub(redis.sha1hex(txhash), 1, 8)
end

-- Proof of a payment for which the payout has no place any more: it was written off, or is sent or paid by another attempt.
local function note_late_payment(payout, txhash, at)
  local late = redis.call('HMGET', payout.record, 'lateTxhash', 'lateAt')
  local isRepeated = late[1] == txhash
  if isRepeated then at = late[2] else redis.call('HSET', payout.record, 'lateTxhash', txhash, 'lateAt', at) end
  redis.call('ZADD', LATE, 'NX', at, payout.id)
  if isRepeated and has_event(EVENTS, 'late_payment', payout.id, payout.state, at) then return end
  append_event('late_payment', payout.id, '', payout.state, at, '', 'paid as ' .. txhash)
end

-- A change of the account and its event are two writes; `untold` stands between them, for the next script to complete.
local UNPAUSED = { 'pausedReason', 'pausedBy', 'pausedAt', 'rejectionsInARow', 'unknownsInARow' }

local function untold(kind, at, by, reason)
  return kind .. '\t' .. at .. '\t' .. by .. '\t' .. reason
end

local function tell(kind, at, by, reason)
  append_event(kind, '', '', '', at, by, reason)
  redis.call('HDEL', LEDGER, 'untold')
end

local function tell_untold(text)
  if not text then return end
  local kind, at, by, reason = string.match(text, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$')
  if kind == 'resumed' then redis.call('HDEL', LEDGER, unpack(UNPAUSED)) end
  append_missing_event(kind, '', '', '', at, by, reason)
  redis.call('HDEL', LEDGER, 'untold')
end

local function paused_fields(at, by, reason)
  return { 'pausedReason', reason, 'pausedBy', by, 'pausedAt', at, 'untold', untold('paused', at, by, reason) }
end

-- What came of a send that counts where a policy counts: accepted or unpaid. Who reads it takes no harm where it is told twice.
local function note_spent(token, kind, at)
  if redis.call('EXISTS', SPENT) == 0 then return end
  redis.call('XADD', SPENT, '*', 'token', token, 'kind', kind, 'at', at, 'spend', '')
end

-- Whether a payout may be moved as was decided. `attempt`: the one that was decided about, '' = any.
-- Returns nil where it may, 1 where it was moved so before, or why it may not: {code, …}
local function check_change(payout, from, to, by, reason, attempt)
  if payout.state ~= from then
    -- The same change, asked for again because its reply was lost.
    local entry = redis.call('HGET', payout.record, 'h' .. (payout.n - 1))
    local _, last, lastBy, lastReason = read_history_entry(entry)
    if by ~= '' and last == to and lastBy == by and lastReason == reason then return 1 end
    return { -6, payout.state, payout.attempt }
  end
  if attempt ~= '' and tonumber(attempt) ~= tonumber(payout.attempt) then return { -12, payout.attempt } end
end

-- A change that was made before, perhaps without a signature, is asked for again with one.
local function keep_act(payout, act)
  if act then redis.call('HSET', payout.record, 'act', act) end
end

-- Whether a payout may be sent by an operator's word. Returns nil, or why not: {code, …}
local function check_requeue(payout)
  local lateTxhash = redis.call('HGET', payout.record, 'lateTxhash')
  if lateTxhash then return { -13, lateTxhash } end
  local waitMs = payout.state == 'unknown' and doubt_left(payout.record) or 0
  if waitMs > 0 then return { -11, waitMs } end
end

-- The fields of a payout that an operator puts back. It needs a job of its own: the round is part of the job's id.
local function requeue(payout)
  -- It goes to the end of the queue, whatever place it had before.
  redis.call('HDEL', payout.record, 'place', 'queuedSince')
  return { 'round', (redis.call('HGET', payout.record, 'round') or 0) + 1 }
end

-- Notes one act for many payouts. The calls of one command follow each other, and count as one act.
local ONE_ACT_MS = 60000

local function note_act(from, to, at, by, reason, count)
  local last = redis.call('XREVRANGE', ACTIVITY, '+', '-', 'COUNT', 1)[1]
  local field = last and last[2]
  local continues = field and field[2] == 'state' and field[4] == '' and field[6] == from and field[8] == to
    and field[12] == by and field[14] == reason and math.abs(at - field[10]) < ONE_ACT_MS
  if not continues then
    append_act('state', '', from, to, at, by, reason, count, '')
    return
  end
  append_act('state', '', from, to, at, by, reason, count + field[16], field[18] == '' and last[1] or field[18])
  redis.call('XDEL', ACTIVITY, last[1])
end

-- The lease is this owner's, in this epoch, and not given back. `lease`: its fields, where the caller has read them.
local function holds_lease(owner, epoch, lease)
  lease = lease or redis.call('HMGET', SENDER, 'owner', 'epoch', 'released')
  return lease[1] == owner and lease[2] == epoch and lease[3] == '0'
end

-- A ledger of a newer format is left alone; one of format 1, which had no mark, is marked. There a worker whose journal
-- objected paused the account, which an operator could resume: that becomes an objection. The pause stays until the
-- adoption, for workers of format 1 know nothing else.
local function check_format(account)
  if account.format then return tonumber(account.format) end
  if not MARKS_FORMAT then return FORMAT end
  if account.pausedBy == 'send journal' then
    redis.call('HSET', OBJECTIONS, 'unnamed', cjson.encode({ kind = 'ledger', reason = account.pausedReason, at = account.pausedAt }))
  end
  redis.call('HSET', LEDGER, 'format', NEW_FORMAT)
  return NEW_FORMAT
end

-- The account as it was before the script changed anything; false where a field is not there. Read once, for each script.
local ACCOUNT_FIELDS = { 'format', 'pausedBy', 'pausedReason', 'pausedAt', 'id', 'untold', 'counted', 'rejectionsInARow',
  'unknownsInARow' }
local account = {}
for i, value in ipairs(redis.call('HMGET', LEDGER, unpack(ACCOUNT_FIELDS))) do account[ACCOUNT_FIELDS[i]] = value end

local format = check_format(account)
if format > FORMAT then return { -10, format } end
