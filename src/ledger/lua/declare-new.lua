-- Records an operator's statement that no process sends for this account anywhere. The first lease holder then begins
-- as after a released lease.
-- ARGV: at ('' to look for traces only), by, reason
-- Returns: 1 noted, 0 it was noted before or nothing was to be noted, {-22, trace} there are traces of a sender
if at ~= '' then publish_pending(redis.call('HGET', LEDGER, 'pendingEvent')) end
local sender = redis.call('HMGET', SENDER, 'epoch', 'sends', 'released')
if tonumber(sender[1] or 0) > 0 or tonumber(sender[2] or 0) > 0 then return { -22, 'a process has had the right to send' } end
if redis.call('EXISTS', JOURNALS) == 1 or redis.call('EXISTS', OBJECTIONS) == 1 then
  return { -22, 'the ledger knows a send journal' }
end
for state, index in pairs(INDEX) do
  local is_never_sent = state == 'queued' or state == 'held' or state == 'cancelled'
  local exists = redis.call('EXISTS', index) == 1
  if not is_never_sent and exists then return { -22, 'a payout is ' .. state } end
end
if at == '' or sender[3] == '1' then return 0 end
append_missing_event('declared_new', '', '', '', at, by, reason, '')
redis.call('HSET', SENDER, 'owner', '', 'epoch', 0, 'beat', 0, 'released', 1)
return 1
