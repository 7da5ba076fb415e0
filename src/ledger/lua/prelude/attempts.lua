-- An attempt of format 1, which kept the epoch of the last attempt only.
local FORMER_ATTEMPT = '?'

-- No version writes a larger number; this bounds the work for an altered record.
local MAX_ATTEMPTS = 100000

-- A payout's tokens by attempt number. Format 1 identified an attempt by its epoch.
local function read_tokens(attempt, text, epoch)
  local tokens = {}
  for word in string.gmatch(text or '', '%S+') do tokens[#tokens + 1] = word end
  for number = #tokens + 1, math.min(attempt, MAX_ATTEMPTS) do
    tokens[number] = number == attempt and epoch and 'e:' .. epoch or FORMER_ATTEMPT
  end
  return tokens
end

-- Whether the record has seen this very attempt begin. A Redis that came back older gives the same number out again.
local function knows(payout, attempt, token)
  local known = payout.tokens[attempt] or ''
  if known == FORMER_ATTEMPT then return string.sub(token, 1, 2) == 'e:' end
  for word in string.gmatch(known, '[^/]+') do
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
  for number = #tokens + 1, attempt do tokens[number] = FORMER_ATTEMPT end
  local known = tokens[attempt]
  tokens[attempt] = known == FORMER_ATTEMPT and token or known .. '/' .. token
  return table.concat(tokens, ' ')
end
