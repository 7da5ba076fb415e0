local DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

local function to_base36(number)
  local text = ''
  repeat
    local digit = number % 36
    text = string.sub(DIGITS, digit + 1, digit + 1) .. text
    number = (number - digit) / 36
  until number == 0
  return text
end

-- An entry begins with the state's code and the time in base 36: qmwtk3v5j.
local function history_entry(to, at, by, reason)
  local entry = CODE[to] .. to_base36(tonumber(at))
  if by == '' and reason == '' then return entry end
  return entry .. '\t' .. by .. '\t' .. reason
end

-- Returns: at, to, by, reason; '' each for an entry that someone has altered
local function read_history_entry(entry)
  local code, time, behind = string.match(entry, '^(%l)(%w+)(.*)$')
  local at = STATE_OF[code or ''] and tonumber(time, 36)
  if not at then return '', '', '', '' end
  local by, reason = string.match(behind, '^\t([^\t]*)\t(.*)$')
  return string.format('%.0f', at), STATE_OF[code], by or '', reason or ''
end
