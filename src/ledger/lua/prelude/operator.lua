-- `attempt`: the one that was decided about, '' = any.
-- Returns: nil if the payout may be moved, 1 if it was moved so before, or why it may not: {code, …}
local function check_change(payout, from, to, by, reason, attempt)
  if payout.state ~= from then
    -- The same change, repeated because its reply was lost.
    local entry = redis.call('HGET', payout.record, 'h' .. (payout.n - 1))
    local _, last, lastBy, lastReason = read_history_entry(entry)
    if by ~= '' and last == to and lastBy == by and lastReason == reason then return 1 end
    return { -6, payout.state, payout.attempt }
  end
  if attempt ~= '' and tonumber(attempt) ~= tonumber(payout.attempt) then return { -12, payout.attempt } end
end

-- A repeated change may bring a signature that the first one lacked.
local function keep_act(payout, act)
  if act then redis.call('HSET', payout.record, 'act', act) end
end

-- Whether an operator may requeue a payout. Returns nil, or why not: {code, …}
local function check_requeue(payout)
  local lateTxhash = redis.call('HGET', payout.record, 'lateTxhash')
  if lateTxhash then return { -13, lateTxhash } end
  local waitMs = payout.state == 'unknown' and doubt_left(payout.record) or 0
  if waitMs > 0 then return { -11, waitMs } end
end

-- The fields of a payout that an operator requeues. Its round makes the job's id new.
local function requeue(payout)
  -- It goes to the end of the queue.
  redis.call('HDEL', payout.record, 'place', 'queuedSince')
  return { 'round', (redis.call('HGET', payout.record, 'round') or 0) + 1 }
end

-- Records one act for many payouts. The successive calls of one command count as one act.
local ONE_ACT_MS = 60000

local function note_act(from, to, at, by, reason, count)
  local last = redis.call('XREVRANGE', ACTIVITY, '+', '-', 'COUNT', 1)[1]
  local field = last and last[2]
  local continues = field and field[2] == 'state' and field[4] == '' and field[6] == from and field[8] == to
    and field[12] == by and field[14] == reason and math.abs(at - field[10]) < ONE_ACT_MS
  if not continues then
    append_act('state', '', from, to, at, by, reason, count, '')
    return
  end
  append_act('state', '', from, to, at, by, reason, count + field[16], field[18] == '' and last[1] or field[18])
  redis.call('XDEL', ACTIVITY, last[1])
end
