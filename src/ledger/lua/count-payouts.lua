-- Counts the payouts of every state at one moment, and says which moment that is.
-- ARGV: the states
-- Returns: {id of the newest event ('0-0' without one), the last number given to an index entry, count of each state}
local newest = redis.call('XREVRANGE', EVENTS, '+', '-', 'COUNT', 1)[1]
local reply = { newest and newest[1] or '0-0', redis.call('HGET', LEDGER, 'seq') or '0' }
for i, state in ipairs(ARGV) do
  reply[i + 2] = redis.call(ENDED[state] and 'XLEN' or 'ZCARD', INDEX[state])
end
return reply
