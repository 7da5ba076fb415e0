-- Takes the lease over, if neither it nor the sends changed since the caller read them.
-- ARGV: owner, journalId, journal (JSON: where it is, and how many replicas it knows), forgetBefore (ms since 1970: journals unused since are
--   forgotten; their files are gone), seenOwner, seenEpoch, seenBeat, seenReleased ('' each for an absent lease), seenSends,
--   seenLast ('' = none)
-- Returns: the new epoch (1 or more), 0 if something changed meanwhile
local seen = redis.call('HMGET', SENDER, 'owner', 'epoch', 'beat', 'released', 'sends', 'last')
seen[5] = seen[5] or '0'
local as_read = { seenOwner, seenEpoch, seenBeat, seenReleased, seenSends, seenLast }
for i = 1, 6 do
  if (seen[i] or '') ~= as_read[i] then return 0 end
end
local epoch = tonumber(seen[2] or 0) + 1
local journals = redis.call('HGETALL', JOURNALS)
for i = 1, #journals, 2 do
  if (cjson.decode(journals[i + 1]).at or 0) < tonumber(forgetBefore) then redis.call('HDEL', JOURNALS, journals[i]) end
end
redis.call('HSETNX', JOURNALS, journalId, journal)
-- Commands of hosts without a journal wait for as many replicas as the holder's journal knows.
local replicas = cjson.decode(journal).replicas or 0
if replicas > (tonumber(redis.call('HGET', LEDGER, 'replicas') or 0) or 0) then
  redis.call('HSET', LEDGER, 'replicas', string.format('%.0f', replicas))
end
-- The `sender` key may be lost. A payout in `sending` still shows that a request may be on its way.
local sending = redis.call('ZRANGE', INDEX.sending, 0, 0)[1]
if sending and (redis.call('HGET', SENDER, 'unanswered') or '') == '' then
  redis.call('HSET', SENDER, 'unanswered', sending)
end
redis.call('HSET', SENDER, 'owner', owner, 'epoch', epoch, 'beat', 0, 'released', 0)
return epoch
