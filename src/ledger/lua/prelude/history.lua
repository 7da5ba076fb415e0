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

-- A compact entry begins with the state's code and the time in base 36: qmwtk3v5j. Earlier formats begin with a digit.
local function history_entry(to, at, by, reason)
  local entry = is_compact and string.match(at, '^%d+$') and CODE[to] .. to_base36(tonumber(at)) or at .. '\t' .. to
  if by == '' and reason == '' then return entry end
  return entry .. '\t' .. by .. '\t' .. reason
end

local function read_history_entry(entry)
  local code, time, behind = string.match(entry, '^(%l)(%w+)(.*)$')
  if STATE_OF[code or ''] and tonumber(time, 36) then
    local by, reason = string.match(behind, '^\t([^\t]*)\t(.*)$')
    return string.format('%.0f', tonumber(time, 36)), STATE_OF[code], by or '', reason or ''
  end
  local at, to, by, reason = string.match(entry, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$')
  if not at then at, to = string.match(entry, '^([^\t]*)\t(.*)$') end
  return at, to, by or '', reason or ''
end
