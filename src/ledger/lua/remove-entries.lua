-- Removes entries of `sending` that are an index entry and nothing else: without one of its payouts in that state, an
-- entry would stop the account for good.
-- KEYS: the records that the entries name
-- ARGV: at, owner, epoch (of the present holder), reason
-- Returns: {-1} the lease is not the caller's, else {0, payoutId, …} of the entries that were removed
if not holds_lease(owner, epoch) then return { -1 } end

-- A key of another type is no payout either.
local function is_sending(record)
  local state = redis.pcall('HGET', record, 'state')
  if not state or type(state) == 'table' then return false end
  return open(record).state == 'sending'
end

local removed = { 0 }
for i = OWN + 1, #KEYS do
  local payoutId = string.sub(KEYS[i], #PAYOUT_PREFIX + 1)
  if not is_sending(KEYS[i]) and redis.call('ZSCORE', INDEX.sending, payoutId) then
    -- The act first: an entry that is gone would leave no trace after an interruption.
    append_act('entry_removed', payoutId, 'sending', '', at, 'worker', reason, 1, '')
    redis.call('ZREM', INDEX.sending, payoutId)
    removed[#removed + 1] = payoutId
  end
end
return removed
