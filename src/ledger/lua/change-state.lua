-- Moves a payout from a state that the caller expects: cancel, retry, resolve, the end of a transaction.
-- KEYS: the payout's record, the buckets of the txhash
-- ARGV: at, from, to, by, reason, txhash ('' = none; if `to` is unknown, the one that is not the payout's), the attempt
--   that was decided about ('' = any), then field, value, … to set with it
-- Returns: 1 done, {-7} no such payout, {-6, state, attempt} it is in another state, {-8, payoutId} the txhash belongs
--   to another payout, {-11, ms} a request may still be on its way for so long, {-12, attempt} this attempt was begun
--   since, {-13, txhash} it was paid by this transaction
local record, buckets = KEYS[OWN + 1], { unpack(KEYS, OWN + 2) }
local at, from, to, by, reason, txhash, attempt = unpack(ARGV, 1, 7)
local payout = open(record)
if not payout then return { -7 } end
local refusal = check_change(payout, from, to, by, reason, attempt)
local record_fields = { unpack(ARGV, 8) }
if refusal == 1 then
  for i = 1, #record_fields, 2 do
    if record_fields[i] == 'act' then keep_act(payout, record_fields[i + 1]) end
  end
end
if refusal then return refusal end
local holder = txhash ~= '' and txhash_holder(buckets, txhash)
if txhash ~= '' and to ~= 'unknown' then
  if holder and holder ~= payout.id then return { -8, holder } end
  record_fields[#record_fields + 1] = 'txhash'
  record_fields[#record_fields + 1] = txhash
end
if not ALLOWED[from][to] then error('no transition from ' .. from .. ' to ' .. to) end
if to == 'queued' then
  refusal = check_requeue(payout)
  if refusal then return refusal end
  for _, value in ipairs(requeue(payout)) do record_fields[#record_fields + 1] = value end
end
if to ~= 'unknown' then
  if txhash ~= '' then claim_txhash(buckets, txhash, payout.id) end
elseif holder == payout.id then
  -- Its real payout may then claim it.
  release_txhash(buckets, txhash)
end
move(payout, to, at, by, reason, record_fields)
return 1
