-- Moves many payouts by one operator decision: cancel, retry, resolve without a transaction.
-- KEYS: the payouts' records
-- ARGV: at, from, to, by, reason, then for each payout the attempt that was decided about ('' = any), then, if signed,
--   for each payout the operator's signed act (JSON)
-- Returns a list: for each payout what change-state returns
local at, from, to, by, reason = unpack(ARGV, 1, 5)
if not ALLOWED[from][to] then error('no transition from ' .. from .. ' to ' .. to) end
is_one_act = true
local replies, payouts, count, seen = {}, {}, 0, {}
local first_act = 5 + #KEYS - OWN
for i = 1, #KEYS - OWN do
  local record = KEYS[OWN + i]
  local payout = open(record)
  if seen[record] then error(payout.id .. ' is named twice') end
  seen[record] = payout
  local refusal = { -7 }
  if payout then refusal = check_change(payout, from, to, by, reason, ARGV[5 + i]) end
  if not refusal and to == 'queued' then refusal = check_requeue(payout) end
  if refusal == 1 then keep_act(payout, ARGV[first_act + i]) end
  replies[i] = refusal or 1
  if not refusal then
    payouts[i] = payout
    count = count + 1
  end
end
-- Write the activity entry first: an interrupted script may then over-report, but never under-report.
if count > 0 then note_act(from, to, at, by, reason, count) end
for i = 1, #KEYS - OWN do
  local payout = payouts[i]
  if payout then
    local fields = to == 'queued' and requeue(payout) or {}
    if ARGV[first_act + i] then
      fields[#fields + 1] = 'act'
      fields[#fields + 1] = ARGV[first_act + i]
    end
    move(payout, to, at, by, reason, fields)
  end
end
return replies
