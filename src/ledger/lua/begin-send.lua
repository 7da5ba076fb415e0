-- Begins the one attempt of a payout: queued → sending. From here on, only the outcome decides.
-- KEYS: the payout's record
-- ARGV: at, ledgerId, owner, epoch, sends, last and acts (as the sender knows them: last is the token of the send before),
--   payoutId, attempt (the new one), token (of the new attempt), journalId, journal (JSON: where it is and its last
--   entry), inFlightMs (how long from now on the request may still
--   arrive at the gateway), beat (the holder's last acknowledged heartbeat), spend
--   (JSON: what the caps count; '' without a policy), spentSince (ms: earlier spends are forgotten), decisions (the
--   record's approvals and rejections when the sender checked it), audience (the gateway whose payments the sender
--   makes)
-- Returns: {sends, acts, indexed} the number of sends begun, this one included (1 or more), of people's acts, and 1 if the
--   payout is in the index of its new state and no longer in that of the former, else 0, or
--   {-1} the lease is not the caller's; {-2, ledgerId} another ledger than the caller knows
--   {-23, audience} the ledger is another gateway's
--   {-3, sends, last, acts} the sends differ in number or token, or acts are missing; {-4, reason} the account is paused
--   {-9, journalId, reason} a journal objects to this ledger
--   {-5, payoutId, …} other payouts are sending
--   {-6, state, attempt} not queued, not at this attempt, or approved or rejected since
local record = KEYS[OWN + 1]
publish_pending(account.pendingEvent)
if account.id ~= ledgerId then return { -2, account.id or '' } end
if account.audience and account.audience ~= audience then return { -23, account.audience } end
local sender = redis.call('HMGET', SENDER, 'owner', 'epoch', 'released', 'beat', 'sends', 'last')
if not holds_lease(owner, epoch, sender) then return { -1 } end
-- A ledger that came back older may have forgotten an objection, and nothing else.
if tonumber(sender[4]) < tonumber(beat) then return { -1 } end
-- The last send's token identifies all sends before it; their number alone does not.
local begun = { sender[5] or '0', sender[6] or '' }
-- A count that is no number lacks them all.
local has_acts = (tonumber(account.acts or 0) or -1) >= tonumber(acts)
if begun[1] ~= sends or begun[2] ~= last or not has_acts then return { -3, begun[1], begun[2], account.acts or 0 } end
local objection = redis.call('HGETALL', OBJECTIONS)
if #objection > 0 then return { -9, objection[1], cjson.decode(objection[2]).reason } end
if account.pausedReason then return { -4, account.pausedReason } end
local others = redis.call('ZRANGE', INDEX.sending, 0, -1)
if #others > 0 then return { -5, unpack(others) } end
local payout = open(record)
if not payout or payout.state ~= 'queued' or payout.attempt + 1 ~= tonumber(attempt) then
  return { -6, payout and payout.state or '', payout and payout.attempt or '' }
end
-- A rejection may have come while the sender waited for its slot.
if payout.decisions ~= tonumber(decisions) then return { -6, payout.state, payout.attempt } end
-- The first send binds the ledger. A staging worker started on it by mistake would otherwise pay everything there.
if not account.audience then redis.call('HSET', LEDGER, 'audience', audience) end
-- Record the spend before the send. If the begin fails, the outcome corrects the entry or it expires.
if spend ~= '' then
  redis.call('XADD', SPENT, 'MINID', '~', spentSince, '*', 'token', token, 'kind', 'begun', 'at', at, 'spend', spend)
end
local place = redis.call('ZSCORE', INDEX.queued, payout.id)
-- `unanswered` tells every later reader that a request may still be on its way, and for how long.
redis.call('HSET', SENDER, 'sends', begun[1] + 1, 'last', token, 'unanswered', token, 'inFlightMs', inFlightMs,
  'inFlightUntil', now_ms() + inFlightMs, 'isCounted', spend ~= '' and 1 or 0,
  'journal', journalId, 'place', place or '', 'queuedSince', queued_since(payout))
redis.call('HSET', JOURNALS, journalId, journal)
local fields = { 'attempt', attempt, 'tokens', tokens_with(payout, payout.attempt + 1, token) }
local entered, left = move(payout, 'sending', at, '', '', fields)
-- What an interrupted script left was completed above, and nothing else is sending. So a 0 is a mistake of these scripts.
local is_indexed = entered == 1 and left == (place and 1 or 0)
return { begun[1] + 1, tonumber(account.acts or 0) or 0, is_indexed and 1 or 0 }
