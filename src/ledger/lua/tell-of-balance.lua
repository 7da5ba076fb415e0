-- Tells that the balance fell without a payout that explains it, or that an operator has looked at that.
-- ARGV: kind, at, by, reason
-- Returns: 1
local kind, at, by, reason = unpack(ARGV)
tell_untold(redis.call('HGET', LEDGER, 'untold'))
-- Asked again because it was interrupted, or its reply was lost, it tells once.
append_missing_event(kind, '', '', '', at, by, reason)
return 1
