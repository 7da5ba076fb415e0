-- Counts payouts of a batch by state at one moment, and says which moment that is.
-- KEYS: the batch, then records of payouts
-- Returns: {id of the newest event ('0-0' without one), number of payouts in the batch, state, count, state, count, …}
local batch = KEYS[OWN + 1]
local counts, order = {}, {}
for i = OWN + 2, #KEYS do
  local state, pending = unpack(redis.call('HMGET', KEYS[i], 'state', 'pending'))
  -- An interrupted change has no event yet: `pending` is the state before it, '' for a new payout.
  local told = pending or state
  if told and told ~= '' then
    if not counts[told] then order[#order + 1] = told end
    counts[told] = (counts[told] or 0) + 1
  end
end
local newest = redis.call('XREVRANGE', EVENTS, '+', '-', 'COUNT', 1)[1]
local reply = { newest and newest[1] or '0-0', redis.call('ZCARD', batch) }
for _, state in ipairs(order) do
  reply[#reply + 1] = state
  reply[#reply + 1] = counts[state]
end
return reply
