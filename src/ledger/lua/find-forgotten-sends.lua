-- Finds journaled sends that the ledger does not know. A payout that retention removed was final, so its sends are
-- known.
-- KEYS: for each send the payout's record and its bucket of removed ids
-- ARGV: attempt and token of each send
-- Returns: position (from 1) and state ('' if there is no such payout), … of those
local forgotten = {}
for i = 1, #ARGV - REST, 2 do
  local record, bucket = KEYS[OWN + i], KEYS[OWN + i + 1]
  local payout = open(record)
  local isKnown
  if payout then
    isKnown = knows(payout, tonumber(ARGV[REST + i]), ARGV[REST + i + 1])
  else
    isKnown = redis.call('HEXISTS', bucket, string.sub(record, #PAYOUT_PREFIX + 1)) == 1
  end
  if not isKnown then
    forgotten[#forgotten + 1] = (i + 1) / 2
    forgotten[#forgotten + 1] = payout and payout.state or ''
  end
end
return forgotten
