-- Puts back a payout whose attempt is proved unsent: sending → queued, or → unknown if another attempt was paid.
-- KEYS: the payout's record
-- ARGV: at, attempt, token, reason
-- Returns: 1 put back, 0 this attempt is not sending (an unclear begin did not happen)
local record = KEYS[OWN + 1]
attempt = tonumber(attempt)
local payout = open(record)
if not payout then return 0 end

-- To its former place, which the sender remembers for its last send only.
local function put_back()
  local sender = redis.call('HMGET', SENDER, 'last', 'place', 'queuedSince')
  if sender[1] ~= token or not has_place(sender[2]) then return move(payout, 'queued', at, '', reason) end
  move(payout, 'queued', at, '', reason, { 'place', sender[2], 'queuedSince', sender[3] }, sender[2])
end

-- Nothing is sent in these states. A late begin must fit neither of them, nor the released payout.
local waits = payout.state == 'queued' or payout.state == 'held'
if waits and payout.attempt + 1 == attempt then
  -- The begin may still come late: using its number up makes it fail. The token distinguishes a used-up number from a
  -- send.
  redis.call('HSET', record, 'attempt', attempt, 'tokens', tokens_with(payout, attempt, token))
  return 0
end
if not is_last(payout, attempt, token) then return 0 end
note_spent(token, 'unpaid', at)
if payout.state == 'sending' then
  -- Another attempt was paid meanwhile: the payout must not be sent again.
  local gatewayId = redis.call('HGET', record, 'lateGatewayId')
  local paid = gatewayId and 'not sent, because an earlier attempt was paid as ' .. gatewayId
  if paid then
    move(payout, 'unknown', at, '', paid, { 'message', paid })
  else
    put_back()
  end
elseif not waits then return 0 end
if redis.call('HGET', SENDER, 'unanswered') == token then redis.call('HSET', SENDER, 'unanswered', '') end
return 1
