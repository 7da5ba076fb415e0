-- Reconciles one send that the journal witnesses with a ledger that may have forgotten it.
-- ARGV: at, by, reason, payoutId, attempt, epoch, then field, value, … of the payout as it was sent
-- Returns: 1 the payout became `unknown`, 0 the ledger knows of the send, or removed the payout when it was final
local at, by, reason, payoutId, attempt, epoch = unpack(ARGV, 1, 6)
local record = payout_key(payoutId)
local state = redis.call('HGET', record, 'state')
if not state then
  if redis.call('HEXISTS', removed_bucket(payoutId), payoutId) == 1 then return 0 end
  redis.call('HSET', record, 'state', 'unknown', 'attempt', attempt, 'epoch', epoch, 'message', reason, 'n', 1,
    'h0', history_entry('unknown', at, by, reason), unpack(ARGV, 7))
  enter(payoutId, '', 'unknown', at, by, reason)
  return 1
end
if knows_send(record, attempt, epoch) then return 0 end
redis.call('HSET', record, 'attempt', attempt, 'epoch', epoch)
if not ALLOWED[state]['unknown'] then return 0 end
redis.call('HSET', record, 'message', reason)
move(payoutId, 'unknown', at, by, reason)
return 1
