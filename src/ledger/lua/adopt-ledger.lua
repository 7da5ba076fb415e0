-- Raises the ledger above everything that the journals know, after each of their sends was reconciled. Like a send, the
-- adoption has a number and a token, which distinguish the ledger from its former self.
-- A request may still be on its way, so the next lease holder waits as after an unanswered send.
-- ARGV: at, by, reason, act (the operator's, signed, JSON; '' = none), epoch, sends and acts (the journals' highest), token,
--   inFlightMs (how long a request may still be on its way), bookmarks (ids of the last events when this ledger was read,
--   separated by spaces), journals (the number of those read), then for each its id and entry (JSON), then the ids of those given up
-- Returns: {epoch, sends, number of remaining objections}, {-14} the ledger came back older since a bookmark
use_act(act)
publish_pending(redis.call('HGET', LEDGER, 'pendingEvent'))
for id in string.gmatch(bookmarks, '%S+') do
  if #redis.call('XRANGE', EVENTS, id, id) == 0 then return { -14 } end
end
local sender = redis.call('HMGET', SENDER, 'epoch', 'sends')
local new_epoch = math.max(tonumber(sender[1] or 0), tonumber(epoch)) + 1
local new_sends = math.max(tonumber(sender[2] or 0), tonumber(sends)) + 1
redis.call('HSET', SENDER, 'owner', '', 'epoch', new_epoch, 'beat', 0, 'released', 0, 'sends', new_sends,
  'last', token, 'unanswered', 'adopted', 'inFlightMs', inFlightMs)
redis.call('HSET', LEDGER, 'acts',
  math.max(tonumber(redis.call('HGET', LEDGER, 'acts') or 0) or 0, tonumber(acts)))
if act ~= '' then redis.call('HSET', LEDGER, 'adoptAct', act) end
append_event('ledger_adopted', '', '', '', at, by, reason, '')
-- People look at what came back first. Before the objections end, so that nothing is sent in between.
local pause = 'the ledger was adopted: look at what came back, then resume'
local paused = paused_fields(at, 'adoption', pause)
if paused then
  redis.call('HSET', LEDGER, unpack(paused))
  publish('paused', at, 'adoption', pause)
end
local given_up = REST + 1 + 2 * tonumber(journals)
-- Remove objections last: while one remains, nothing is sent.
local settled = {}
for i = REST + 1, given_up - 1, 2 do
  redis.call('HSET', JOURNALS, ARGV[i], ARGV[i + 1])
  settled[#settled + 1] = ARGV[i]
end
for i = given_up, #ARGV do
  redis.call('HDEL', JOURNALS, ARGV[i])
  settled[#settled + 1] = ARGV[i]
end
if #settled > 0 then redis.call('HDEL', OBJECTIONS, unpack(settled)) end
return { new_epoch, new_sends, redis.call('HLEN', OBJECTIONS) }
