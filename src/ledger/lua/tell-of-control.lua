-- Reports the loaded policy, or where the send journal ends.
-- ARGV: kind, at, hash (of the policy, or of the journal's newest line), reason
-- Returns: 1
local kind, at, hash, reason = unpack(ARGV)
tell_untold(redis.call('HGET', LEDGER, 'untold'))
-- A repetition after an interruption or a lost reply appends nothing.
append_missing_event(kind, '', '', hash, at, '', reason)
return 1
