-- Stands before every script of this folder. The loader puts the tables ALLOWED (from → to → true) and FINAL
-- (state → true) in front of it, made from states.ts. Every script takes one key, KEYS[1], the account's `ledger` hash; all other keys of the
-- account share its prefix and its cluster slot.

local PREFIX = string.sub(KEYS[1], 1, -7)

local function key(name)
  return PREFIX .. name
end

local function payout_key(payoutId)
  return PREFIX .. 'payout:' .. payoutId
end

-- One entry of the event stream. The fields are always the same, which Redis stores compactly.
local function append_event(kind, payoutId, from, to, at, by, reason)
  redis.call('XADD', key('events'), '*', 'type', kind, 'payoutId', payoutId, 'from', from, 'to', to,
    'at', at, 'by', by, 'reason', reason)
end

local function history_entry(to, at, by, reason)
  if by == '' and reason == '' then return at .. '\t' .. to end
  return at .. '\t' .. to .. '\t' .. by .. '\t' .. reason
end

-- What a payout in this state waits for is a BullMQ job; until that is added, the outbox remembers it.
local NEEDS_JOB = { queued = true, in_progress = true }

local function enter(payoutId, from, to, at, by, reason)
  redis.call('ZADD', key('state:' .. to), redis.call('HINCRBY', KEYS[1], 'seq', 1), payoutId)
  if NEEDS_JOB[to] then redis.call('ZADD', key('outbox'), at, to .. ' ' .. payoutId) end
  append_event('state', payoutId, from, to, at, by, reason)
end

-- Moves a payout to another state: record, history, index, outbox and event. The caller has checked what is special
-- to its transition; that the transition exists at all is checked here.
local function move(payoutId, to, at, by, reason)
  local record = payout_key(payoutId)
  local current = redis.call('HMGET', record, 'state', 'n')
  local from = current[1]
  if not from or not ALLOWED[from][to] then
    error('no transition from ' .. tostring(from) .. ' to ' .. to)
  end
  redis.call('HSET', record, 'state', to, 'n', current[2] + 1, 'h' .. current[2], history_entry(to, at, by, reason))
  redis.call('ZREM', key('state:' .. from), payoutId)
  enter(payoutId, from, to, at, by, reason)
end

local function txhash_bucket(txhash)
  return key('txhash:' .. string.sub(redis.sha1hex(txhash), 1, 3))
end

local function set_txhash(payoutId, txhash)
  redis.call('HSET', payout_key(payoutId), 'txhash', txhash)
  redis.call('HSET', txhash_bucket(txhash), txhash, payoutId)
end

-- Small hashes, which Redis stores compactly: payoutId → the state in which a removed payout had ended.
local function removed_bucket(payoutId)
  return key('removed:' .. string.sub(redis.sha1hex(payoutId), 1, 3))
end

local function pause(reason, by, at)
  redis.call('HSET', KEYS[1], 'pausedReason', reason, 'pausedBy', by, 'pausedAt', at)
  append_event('paused', '', '', '', at, by, reason)
end

local function resume(by, reason, at)
  redis.call('HDEL', KEYS[1], 'pausedReason', 'pausedBy', 'pausedAt', 'rejectionsInARow', 'unknownsInARow')
  append_event('resumed', '', '', '', at, by, reason)
end

-- Whether a payout's record has seen this attempt begin. Its number alone does not tell: revert-send may have used the
-- number up under an older lease, in a ledger that then came back older than the send.
local function knows_send(record, attempt, epoch)
  local current = redis.call('HMGET', record, 'attempt', 'epoch')
  local begun, under = tonumber(current[1] or 0), tonumber(current[2] or 0)
  return begun > tonumber(attempt) or (begun == tonumber(attempt) and under >= tonumber(epoch))
end

-- The lease is this owner's, in this epoch, and not given back.
local function holds_lease(owner, epoch)
  local lease = redis.call('HMGET', key('sender'), 'owner', 'epoch', 'released')
  return lease[1] == owner and lease[2] == epoch and lease[3] == '0'
end
