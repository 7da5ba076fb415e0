-- Reports that the balance fell without an explaining payout, or that an operator accepted that.
-- ARGV: kind, at, by, reason
-- Returns: 1
local kind, at, by, reason = unpack(ARGV)
tell_untold(redis.call('HGET', LEDGER, 'untold'))
-- A repetition after an interruption or a lost reply appends nothing.
append_missing_event(kind, '', '', '', at, by, reason)
return 1
