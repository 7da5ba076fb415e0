-- Binds the ledger to another gateway, as an operator states: future sends are paid there.
-- ARGV: at, by, reason, act (the operator's, signed, JSON; '' = none), audience, then the states that no payout may be in
-- Returns: 1 done, 0 it was bound so before, -1 payouts are in such a state
use_act(act)
if account.audience == audience then return 0 end
for i = REST + 1, #ARGV do
  if redis.call('EXISTS', INDEX[ARGV[i]]) == 1 then return -1 end
end
-- Write the event first: an operator repeats an interrupted command, which then appears twice but never goes
-- unrecorded.
append_event('ledger_adopted', '', '', '', at, by, reason, '')
if act ~= '' then redis.call('HSET', LEDGER, 'adoptAct', act) end
redis.call('HSET', LEDGER, 'audience', audience)
return 1
