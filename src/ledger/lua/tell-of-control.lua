-- Tells what decides, and what was written: the policy that was loaded, or where the send journal ends.
-- ARGV: kind, at, hash (of the policy, or of the journal's newest line), reason
-- Returns: 1
local kind, at, hash, reason = unpack(ARGV)
tell_untold(redis.call('HGET', LEDGER, 'untold'))
-- Asked again because it was interrupted, or its reply was lost, it tells once.
append_missing_event(kind, '', '', hash, at, '', reason)
return 1
