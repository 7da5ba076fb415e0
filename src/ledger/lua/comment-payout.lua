-- Adds what a person wrote about a payout. It changes no state, sends no event, and is no act that a journal counts: a Redis that
-- forgot it must not stop the account.
-- KEYS: the payout's record
-- ARGV: at, by, text, most (comments of one payout)
-- Returns: 1 kept now, or already the last one, {-7} no such payout, {-26, count} it has the most already
local record = KEYS[OWN + 1]
local payout = open(record)
if not payout then return { -7 } end
local names = {}
for i = 1, tonumber(most) do names[i] = 'c' .. (i - 1) end
local kept = redis.call('HMGET', record, unpack(names))
local count = 0
while kept[count + 1] do count = count + 1 end

-- The same comment, repeated because its reply was lost.
local written = '\t' .. by .. '\t' .. text
if count > 0 and string.match(kept[count], '^%w+(\t.*)$') == written then return 1 end
if count == #names then return { -26, count } end
append_act('comment', payout.id, '', '', at, by, text, 1, '')
redis.call('HSET', record, names[count + 1], to_base36(tonumber(at)) .. written)
return 1
