-- Records what came of an attempt, also a late one, and pauses the account where that calls for a person.
-- ARGV: at, payoutId, attempt, epoch, to (in_progress, rejected or unknown), txhash, message,
--       maxRejections, maxUnknowns, blockedReason ('' = the answer does not look like a block)
-- Returns: {1, reason of the pause made now or ''}, {0, state} when this attempt was already recorded or decided
local at, payoutId, attempt, epoch, to, txhash, message, maxRejections, maxUnknowns, blockedReason = unpack(ARGV)
local record = payout_key(payoutId)
local current = redis.call('HMGET', record, 'state', 'attempt', 'epoch')
local from = current[1]
local mine = current[2] == attempt and current[3] == epoch
-- An acceptance proves wrong whoever stated that the attempt was not sent: it must not be sent again.
local late = (from == 'unknown' and to ~= 'unknown') or (from == 'queued' and to == 'in_progress')
if not mine or not (from == 'sending' or late) then return { 0, from or '' } end

move(payoutId, to, at, '', message)
if txhash ~= '' then set_txhash(payoutId, txhash) end
if message ~= '' then redis.call('HSET', record, 'message', message) else redis.call('HDEL', record, 'message') end

local answered = to ~= 'unknown'
if answered and redis.call('HGET', key('sender'), 'unanswered') == payoutId .. ' ' .. attempt then
  redis.call('HSET', key('sender'), 'unanswered', '')
end

local reason = blockedReason
if to == 'in_progress' then
  redis.call('HSET', KEYS[1], 'rejectionsInARow', 0, 'unknownsInARow', 0)
elseif to == 'rejected' then
  redis.call('HSET', KEYS[1], 'unknownsInARow', 0)
  local count = redis.call('HINCRBY', KEYS[1], 'rejectionsInARow', 1)
  if reason == '' and count >= tonumber(maxRejections) then reason = count .. ' rejections in a row, the last: ' .. message end
else
  local count = redis.call('HINCRBY', KEYS[1], 'unknownsInARow', 1)
  if reason == '' and count >= tonumber(maxUnknowns) then
    reason = count .. ' sends in a row without a trustworthy answer, the last: ' .. message
  end
end
if reason == '' or redis.call('HEXISTS', KEYS[1], 'pausedReason') == 1 then return { 1, '' } end
pause(reason, 'worker', at)
return { 1, reason }
