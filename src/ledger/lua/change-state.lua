-- Moves a payout from a state that the caller expects: cancel, retry, resolve, the end of a transaction.
-- ARGV: at, payoutId, from, to, by, reason, txhash ('' = none), then field, value, … to set with it
-- Returns: 1 done, {-7} no such payout, {-6, state, attempt} it is in another state,
--   {-8, payoutId} the txhash belongs to another payout
local at, payoutId, from, to, by, reason, txhash = unpack(ARGV, 1, 7)
local record = payout_key(payoutId)
local current = redis.call('HMGET', record, 'state', 'attempt')
if not current[1] then return { -7 } end
if current[1] ~= from then return { -6, current[1], current[2] } end
if txhash ~= '' then
  local holder = redis.call('HGET', txhash_bucket(txhash), txhash)
  if holder and holder ~= payoutId then return { -8, holder } end
end
-- The first write, since it refuses what is no transition, and Redis takes no earlier write back.
move(payoutId, to, at, by, reason)
if txhash ~= '' then set_txhash(payoutId, txhash) end
if #ARGV > 7 then redis.call('HSET', record, unpack(ARGV, 8)) end
-- A payout that a person puts back needs a job of its own: the round is part of the job's id.
if to == 'queued' then redis.call('HINCRBY', record, 'round', 1) end
return 1
