-- Puts back a payout whose attempt is proved not to have been sent: sending → queued; → unknown, where another attempt
-- was paid.
-- KEYS: the payout's record
-- ARGV: at, attempt, token, reason
-- Returns: 1 put back, 0 it is not this attempt that is sending (a begin whose fate was unclear did not happen)
local record = KEYS[OWN + 1]
local at, attempt, token, reason = unpack(ARGV)
attempt = tonumber(attempt)
local payout = open(record)
if not payout then return 0 end

-- To the place that it had; the sender remembers that of its last send only.
local function put_back()
  local sender = redis.call('HMGET', SENDER, 'last', 'place', 'queuedSince')
  if sender[1] ~= token or not has_place(sender[2]) then return move(payout, 'queued', at, '', reason) end
  move(payout, 'queued', at, '', reason, { 'place', sender[2], 'queuedSince', sender[3] }, sender[2])
end

-- Nothing is sent in either; a begin that comes late must fit neither, nor the payout that is released.
local waits = payout.state == 'queued' or payout.state == 'held'
if waits and payout.attempt + 1 == attempt then
  -- The begin did not happen, but it may yet come late: with its number used up, it does not fit any more. The token
  -- tells a number that was used up from a send of the same number.
  redis.call('HSET', record, 'attempt', attempt, 'tokens', tokens_with(payout, attempt, token))
  return 0
end
if not is_last(payout, attempt, token) then return 0 end
note_spent(token, 'unpaid', at)
if payout.state == 'sending' then
  -- Another attempt was paid, as it turned out meanwhile: it must not be sent again.
  local txhash = redis.call('HGET', record, 'lateTxhash')
  local paid = txhash and 'not sent, because an earlier attempt was paid as ' .. txhash
  if paid then
    move(payout, 'unknown', at, '', paid, { 'message', paid })
  else
    put_back()
  end
elseif not waits then return 0 end
if redis.call('HGET', SENDER, 'unanswered') == token then redis.call('HSET', SENDER, 'unanswered', '') end
return 1
