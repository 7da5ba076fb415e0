-- Tells which sends that a journal witnesses the ledger does not know of. Changes nothing.
-- ARGV: payoutId, attempt, epoch, … of each send
-- Returns: position (from 1) and state ('' when there is no such payout), … of those
local forgotten = {}
for i = 1, #ARGV, 3 do
  local payoutId, attempt, epoch = unpack(ARGV, i, i + 2)
  local record = payout_key(payoutId)
  if not knows_send(record, attempt, epoch) then
    forgotten[#forgotten + 1] = (i + 2) / 3
    forgotten[#forgotten + 1] = redis.call('HGET', record, 'state') or ''
  end
end
return forgotten
