-- Records that a send journal and this ledger contradict each other. Until an adoption ends it, begin-send refuses.
-- ARGV: at, journalId, objection (JSON: kind, reason, where the journal is, its highest number)
-- Returns: 1 recorded now, 0 it was there already
local standing = redis.call('HGET', OBJECTIONS, journalId)
local reason = cjson.decode(objection).reason
if standing and cjson.decode(standing).reason == reason then
  -- A number in JSON; events hold the text.
  at = string.format('%.0f', cjson.decode(standing).at)
  append_missing_event('objection', '', '', '', at, journalId, reason, '')
  return 0
end
redis.call('HSET', OBJECTIONS, journalId, objection)
append_event('objection', '', '', '', at, journalId, reason, '')
return 1
