-- Moves a payout from a state that the caller expects: cancel, retry, resolve, the end of a transaction.
-- KEYS: the payout's record, the bucket of the txhash (the record again where there is none)
-- ARGV: at, from, to, by, reason, txhash ('' = none; where it leads to unknown the one that is not the payout's), the attempt that was decided about ('' = any), then field, value, …
--   to set with it
-- Returns: 1 done, {-7} no such payout, {-6, state, attempt} it is in another state,
--   {-8, payoutId} the txhash belongs to another payout, {-11, ms} a request may still be on its way for so long,
--   {-12, attempt} this attempt was begun since, {-13, txhash} it was paid by this transaction
local record, bucket = KEYS[OWN + 1], KEYS[OWN + 2]
local at, from, to, by, reason, txhash, attempt = unpack(ARGV, 1, 7)
local payout = open(record)
if not payout then return { -7 } end
if payout.state ~= from then
  -- The same change, asked for again because its reply was lost.
  local entry = redis.call('HGET', record, 'h' .. (payout.n - 1))
  local _, last, lastBy, lastReason = read_history_entry(entry)
  if by ~= '' and last == to and lastBy == by and lastReason == reason then return 1 end
  return { -6, payout.state, payout.attempt }
end
if attempt ~= '' and tonumber(attempt) ~= tonumber(payout.attempt) then return { -12, payout.attempt } end
local record_fields = { unpack(ARGV, 8) }
local holder = txhash ~= '' and redis.call('HGET', bucket, txhash)
if txhash ~= '' and to ~= 'unknown' then
  if holder and holder ~= payout.id then return { -8, holder } end
  record_fields[#record_fields + 1] = 'txhash'
  record_fields[#record_fields + 1] = txhash
end
if not ALLOWED[from][to] then error('no transition from ' .. from .. ' to ' .. to) end
local lateTxhash = to == 'queued' and redis.call('HGET', record, 'lateTxhash')
if lateTxhash then return { -13, lateTxhash } end
if from == 'unknown' and to == 'queued' then
  local waitMs = doubt_left(record)
  if waitMs > 0 then return { -11, waitMs } end
end
-- A payout that an operator puts back needs a job of its own: the round is part of the job's id.
if to == 'queued' then
  record_fields[#record_fields + 1] = 'round'
  record_fields[#record_fields + 1] = (redis.call('HGET', record, 'round') or 0) + 1
  -- It goes to the end of the queue, whatever place it had before.
  redis.call('HDEL', record, 'place', 'queuedSince')
end
if to ~= 'unknown' then
  if txhash ~= '' then redis.call('HSET', bucket, txhash, payout.id) end
elseif holder == payout.id then
  -- The payout that it belongs to may have it.
  redis.call('HDEL', bucket, txhash)
end
move(payout, to, at, by, reason, record_fields)
return 1
