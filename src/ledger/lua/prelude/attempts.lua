-- In the place of an attempt that the ledger has forgotten, before one that an adoption brought back.
local FORGOTTEN = '?'

-- No version writes a larger number; this bounds the work for an altered record.
local MAX_ATTEMPTS = 100000

-- A payout's tokens by attempt number.
local function read_tokens(text)
  local tokens = {}
  for word in string.gmatch(text or '', '%S+') do tokens[#tokens + 1] = word end
  return tokens
end

-- Whether the record has seen this very attempt begin. A Redis that came back older gives the same number out again.
local function knows(payout, attempt, token)
  for word in string.gmatch(payout.tokens[attempt] or '', '[^/]+') do
    if word == token then return true end
  end
  return false
end

-- The record's tokens with one more. Tokens of one number, from two timelines, are kept side by side.
local function tokens_with(payout, attempt, token)
  if attempt > MAX_ATTEMPTS then error('attempt ' .. attempt .. ' is beyond ' .. MAX_ATTEMPTS .. ', which no version writes') end
  local tokens = {}
  -- Lua's unpack fails for some thousand values.
  for number, known in ipairs(payout.tokens) do tokens[number] = known end
  for number = #tokens + 1, attempt do tokens[number] = FORGOTTEN end
  local known = tokens[attempt]
  tokens[attempt] = known == FORGOTTEN and token or known .. '/' .. token
  return table.concat(tokens, ' ')
end
