-- Reads lease, sends, pause, journals and objections at one moment.
-- ARGV: newId (for a ledger that has none yet)
-- Returns: {fields of the ledger, of the sender, of the journals, of the objections}, each as {field, value, …}
if not account.id then redis.call('HSET', LEDGER, 'id', newId) end
return {
  redis.call('HGETALL', LEDGER), redis.call('HGETALL', SENDER),
  redis.call('HGETALL', JOURNALS), redis.call('HGETALL', OBJECTIONS),
}
