-- Raises the ledger above everything that the journals know, after every send of theirs was reconciled. The adoption has
-- a number and a token as a send has, so nobody can take the ledger for the one that it was before.
-- A request may still be on its way, so the next holder of the lease waits as after a send without a response.
-- ARGV: at, by, reason, the operator's signed act (JSON; '' = none), epoch and sends (the journals' highest), token,
--   bookmarks (ids of events, separated by spaces, that were the last when this ledger was read), number of journals that
--   were read, for each of them its id and entry (JSON), then the ids of those that are given up
-- Returns: {epoch, sends, number of objections that still stand}, {-14} the ledger came back older since a bookmark
local at, by, reason, act, epoch, sends, token, bookmarks, count = unpack(ARGV, 1, 9)
for id in string.gmatch(bookmarks, '%S+') do
  if #redis.call('XRANGE', EVENTS, id, id) == 0 then return { -14 } end
end
local sender = redis.call('HMGET', SENDER, 'epoch', 'sends')
local new_epoch = math.max(tonumber(sender[1] or 0), tonumber(epoch)) + 1
local new_sends = math.max(tonumber(sender[2] or 0), tonumber(sends)) + 1
redis.call('HSET', SENDER, 'owner', '', 'epoch', new_epoch, 'beat', 0, 'released', 0, 'sends', new_sends,
  'last', token, 'unanswered', 'adopted')
if act ~= '' then redis.call('HSET', LEDGER, 'adoptAct', act) end
append_event('ledger_adopted', '', '', '', at, by, reason)
local given_up = 10 + 2 * tonumber(count)
-- Format 1 noted an objection as a pause, which its workers still heed.
if redis.call('HGET', LEDGER, 'pausedBy') == 'send journal' then
  redis.call('HDEL', LEDGER, 'pausedReason', 'pausedBy', 'pausedAt')
end
-- The objections last: while one stands, nothing is sent.
local settled = {}
for i = 10, given_up - 1, 2 do
  redis.call('HSET', JOURNALS, ARGV[i], ARGV[i + 1])
  settled[#settled + 1] = ARGV[i]
end
for i = given_up, #ARGV do
  redis.call('HDEL', JOURNALS, ARGV[i])
  settled[#settled + 1] = ARGV[i]
end
if #settled > 0 then redis.call('HDEL', OBJECTIONS, unpack(settled)) end
return { new_epoch, new_sends, redis.call('HLEN', OBJECTIONS) }
