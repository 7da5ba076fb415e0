-- Shows that the holder is alive.
-- ARGV: owner, epoch
-- Returns: {the number of heartbeats since the lease was taken, this one included, the number of outbox entries, the
--   number of objections, the token of an unanswered send ('' = none), for how many ms its request may arrive ('' = that
--   is lost), the ledger's id, the number of sends and the last one's token, the number of people's acts and how many of
--   them a journal has, the number of payouts in sending}; 0 the lease is not the caller's any more
local sender = redis.call('HMGET', SENDER, 'owner', 'epoch', 'released', 'unanswered', 'inFlightMs', 'sends', 'last')
if not holds_lease(owner, epoch, sender) then return 0 end
return { redis.call('HINCRBY', SENDER, 'beat', 1), redis.call('ZCARD', OUTBOX), redis.call('HLEN', OBJECTIONS),
  sender[4] or '', sender[5] or '', account.id or '', sender[6] or '0', sender[7] or '', account.acts or '0',
  account.keptActs or '0', redis.call('ZCARD', INDEX.sending) }
