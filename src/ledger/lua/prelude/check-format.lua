-- A ledger of a newer format stays unchanged. One of format 1, which has no mark, is marked.
-- There an objection was a pause, which an operator could resume; it becomes a real objection. The pause stays until
-- the adoption, for workers of format 1.
local function check_format(account)
  if account.format then return tonumber(account.format) end
  if not MARKS_FORMAT then return NEW_FORMAT end
  if account.pausedBy == 'send journal' then
    redis.call('HSET', OBJECTIONS, 'unnamed', cjson.encode({ kind = 'ledger', reason = account.pausedReason, at = account.pausedAt }))
  end
  redis.call('HSET', LEDGER, 'format', NEW_FORMAT)
  return NEW_FORMAT
end

-- The account before the script changed anything, read once; absent fields are false.
local ACCOUNT_FIELDS = { 'format', 'pausedBy', 'pausedReason', 'pausedAt', 'id', 'untold', 'counted', 'rejectionsInARow',
  'payoutRejectionsInARow', 'unknownsInARow', 'audience', 'acts' }
local account = {}
for i, value in ipairs(redis.call('HMGET', LEDGER, unpack(ACCOUNT_FIELDS))) do account[ACCOUNT_FIELDS[i]] = value end

local format = check_format(account)
if format > FORMAT then return { -10, format } end
is_compact = format >= COMPACT_FORMAT
