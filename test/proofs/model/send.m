-- A send, from "queued" to "completed", as a model that Rumur searches to its end (docs/model.md has what it found).
-- One rule of the model for one rule of the code; the comment at its right names the file. Time is in guards: a wait of
-- the code is a step that needs what the wait buys (nothing on its way, every older guard expired). Tokens and leases
-- are never used twice, so a token is a number that only rises, and a lease is its worker's until that worker forgets it.
-- An emptied Redis is a copy from the start, with the payouts that the application enqueued again.

const -- The bounds of a search.
  WORKERS: 2; PAYOUTS: 1; SENDS: 3; KILLS: 1; FALLS: 1; LOOKS: 0;
  SHARED: true; -- the workers share one journal (false: a journal for each host)
  REPLICA: false; -- the copy is a replica that follows, and a fall is a failover

const -- The rules of a send. Each can be switched off.
  COMPARES: true;        -- a worker compares journal and ledger before it takes the lease, and what others add later
  NAMES_LAST: true;      -- a begin names the token of the send before
  HEARTBEAT: true;       -- a begin names the holder's last heartbeat
  STOPS_OBJECTED: true;  -- no send begins while an objection stands
  ONE_SENDING: true;     -- no send begins while another payout is sending
  NAMES_ATTEMPT: true;   -- a begin names the attempt's number, and a revert uses it up
  OBJECTS: true;         -- a worker whose journal knows a send that the ledger does not objects
  JOURNALS_FIRST: true;  -- the send is in the journal before its first byte
  CONFIRMS: true;        -- a begin counts once every replica has it
  REREADS: true;         -- after its entry a worker looks whether another wrote to the journal
  ASKS_JOURNAL: true;    -- a worker begins no attempt that its journal knows as sent
  GUARD: true;           -- a request is written within the guard after its begin, or not at all
  WAITS: true;           -- a new holder first waits until the old one's guard and request are over
  WAITS_FOR_HOSTS: true; -- a lease that was given back is followed at once only by a worker with the same journal
  YIELDS_STILL: true;    -- a holder that stood still for the lease time gives the lease up
  LEAVES_UNKNOWN: true;  -- an attempt that an ended sender left becomes unknown
  SPARES_OTHERS: true;   -- an attempt is not put back if the journal has its number from another sender
  WAITS_FOR_STATED: true;-- "not sent" is refused until the request can no longer arrive
  DOUBTS_QUEUED: true;   -- if a journal that objected is given up, every queued payout becomes unknown
  ADOPTS_UNKNOWN: true;  -- a forgotten send without a clear response comes back as unknown
  FINDS_AS_LATE: true;   -- what a look-up finds is recorded as a response that comes late
  FINDS_SAME: true;      -- it counts only a payment with the same data
  MISSING_IS_NOTHING: true; -- "not found" moves nothing

const -- The assumptions of docs/guarantees.md. Each can be switched off.
  A1: true; -- a request arrives in time, or never
  A2: true; -- a response is sent after its request arrived
  A4: true; -- a process is not stopped between the last check and the write
  A5: true; -- the journals that have what Redis lost are still there
  A6: true; -- only this software sends for the account
  A7: true; -- a worker whose sends were forgotten objects in time, and no second copy hides that
  UNCUT: true; -- who loses its lease to another stood still: it was not merely cut off from Redis
  HONEST: true; -- who says "not sent" has looked into the gateway's records

type
  Worker: scalarset(WORKERS); Payout: scalarset(PAYOUTS); Token: 0..SENDS;
  State: enum { queued, sending, in_progress, completed, unknown };
  Step: enum { idle, leased, asking, begun, journaled, checked, written, answered, noted };
  Request: enum { unwritten_, flying, arrived, lost };
  Line: enum { none, open, accepted, not_sent }; Answer: enum { awaited, missing, same, other };
  Ledger: record
    state: array[Payout] of State; token: array[Payout] of Token; -- the newest attempt
    known: array[Token] of boolean; last: Token; -- all attempts; the line of sends: the last one's token
    owner: Worker; released: boolean;            -- the lease; undefined: nobody's
    objected: array[Worker] of boolean;          -- objections, by journal
  end;
var
  redis: Ledger; copy: Ledger; hasCopy: boolean; -- Redis may come back as it was then
  journal: array[Worker] of array[Token] of Line;
  tokens: Token; of_: array[Token] of Payout; number: array[Token] of Token; -- how many; an attempt's payout and number
  maker: array[Token] of Worker; -- who made it, while its begin may come, or it is known to be unwritten
  after: array[Token] of Token; coming: array[Token] of boolean; -- its begin, on its way to Redis, names the last send
  unwritten: array[Token] of boolean; -- its worker knows that no byte of it was written
  request: array[Token] of Request; paid: array[Payout] of 0..2; -- the gateway's book
  worker: array[Worker] of record
    step: Step; token: Token; seen: Token; -- the attempt in hand; the last send that it knows
    ready: boolean; current: boolean;      -- it has waited; it has compared all that is in its journal
    expired: boolean; older: boolean;      -- its guard; Redis lacks one of its heartbeats
    still: boolean;                        -- it stood still while another took the lease
  end;
  gone: array[Worker] of boolean; -- its host is lost, with its journal
  sought: Token; answer: Answer;  -- the janitor's question, and what the gateway said
  kills: 0..KILLS; falls: 0..FALLS; looks: 0..LOOKS;
function wasSent(w: Worker; t: Token): boolean; begin return journal[w][t] = open | journal[w][t] = accepted; end;
-- src/journal/find-mismatch.ts
function agrees(w: Worker): boolean; begin return forall t: Token do wasSent(w, t) -> redis.known[t] end; end;
-- src/journal/journal-view.ts (knows, knowsFromAnother): an attempt's number, from another token
function knowsOther(w: Worker; p: Payout; n: Token; token: Token): boolean; begin
  return exists t: Token do t != token & wasSent(w, t) & of_[t] = p & number[t] = n end; end;
function nextNumber(p: Payout): 0..SENDS + 1; begin return number[redis.token[p]] + 1; end;
function holds(w: Worker): boolean; begin return !isundefined(redis.owner) & redis.owner = w; end;
function isObjected(): boolean; begin return exists w: Worker do redis.objected[w] end; end;
-- src/worker/sender/own-sends.ts
function isUnwritten(w: Worker; t: Token): boolean; begin return unwritten[t] & maker[t] = w; end;
function isAsking(w: Worker; t: Token): boolean; begin return worker[w].step = asking & worker[w].token = t; end;
-- A request of it is not written yet. (Nothing comes between checked and written: A4.)
function isBegun(w: Worker): boolean; begin
  return worker[w].step = asking | worker[w].step = begun | worker[w].step = journaled; end;
-- src/ledger/confirm-write.ts; no replica is left after the last failover of a search
function isConfirmed(t: Token): boolean; begin return redis.known[t] & (falls = FALLS | hasCopy & copy.known[t]); end;
function isOnItsWay(t: Token): boolean; begin return t > 0 & A1 & request[t] = flying; end;
-- src/journal/file-send-journal.ts: a shared journal has the line of every worker
procedure append(w: Worker; t: Token; line: Line); begin
  for o: Worker do if SHARED | o = w then
    journal[o][t] := line; if o != w then worker[o].current := false; end; end; end; end;
procedure release(t: Token); begin unwritten[t] := false; if !coming[t] then undefine maker[t]; after[t] := 0; end; end;
procedure endAttempt(w: Worker); begin worker[w].step := leased; worker[w].token := 0; worker[w].expired := false; end;
-- Its lease is nobody's from now on, also in a copy, and Redis refuses each begin of it.
procedure forgetLease(w: Worker); begin
  clear worker[w];
  for t: Token do if !isundefined(maker[t]) & maker[t] = w then coming[t] := false; release(t); end; end;
  if holds(w) then undefine redis.owner; end;
  if hasCopy & !isundefined(copy.owner) & copy.owner = w then undefine copy.owner; end;
end;
-- src/ledger/lua/finish-send.lua
procedure finish(p: Payout; t: Token; paid_: boolean); begin
  if redis.known[t] & (redis.token[p] = t & (redis.state[p] = sending | redis.state[p] = unknown)
    | paid_ & redis.state[p] = queued) then redis.state[p] := paid_ ? in_progress : unknown; end; end;
procedure fallBack(); begin
  redis := copy; falls := falls + 1; if falls = FALLS then undefine copy; hasCopy := false; end; end;
startstate "all payouts are accepted" begin
  clear redis; undefine redis.owner; undefine copy; hasCopy := false; clear journal; clear request; clear paid;
  clear worker; clear number; clear gone; clear after; clear coming; clear unwritten; clear answer;
  tokens := 0; sought := 0; kills := 0; falls := 0; looks := 0;
  for t: Token do undefine of_[t]; undefine maker[t]; end;
end;

ruleset w: Worker do
  rule "worker {w} takes the lease" -- src/worker/sender/lease-keeper.ts, src/ledger/lua/acquire-lease.lua
    worker[w].step = idle & !gone[w] & (!COMPARES | agrees(w)) & !holds(w) ==> begin
    -- A lease that was not given back is taken once its holder showed no heartbeat: it stood still.
    for o: Worker do if UNCUT & !redis.released & o != w & worker[o].step != idle then worker[o].still := true; end; end;
    worker[w].step := leased; worker[w].seen := redis.last; worker[w].current := true;
    worker[w].ready := redis.released & (SHARED | !WAITS_FOR_HOSTS);
    redis.owner := w; redis.released := false; end;
  rule "worker {w} has waited for the old holder" -- src/worker/sender/lease-keeper.ts, src/worker/sender/pacer.ts
    worker[w].step = leased & !worker[w].ready &
    (!WAITS | (forall t: Token do !isOnItsWay(t) end
      & (!A7 | !OBJECTS | forall o: Worker do agrees(o) | redis.objected[o] end))) ==> begin
    worker[w].ready := true;
    -- What a wait buys: every begun attempt of others is past its guard.
    for o: Worker do if WAITS & GUARD & o != w & isBegun(o) then worker[o].expired := true; end; end; end;
  rule "worker {w} gives the lease back" -- src/ledger/lua/release-lease.lua
    worker[w].step = leased & holds(w) & worker[w].ready ==> begin forgetLease(w); redis.released := true; end;
  rule "worker {w} notices that it is not the sender any more" -- src/worker/sender/ledger-check.ts, sender-loop.ts
    worker[w].step = leased & (!holds(w) | worker[w].older | worker[w].still | !agrees(w) | redis.last != worker[w].seen) ==>
    begin forgetLease(w); end;
  rule "worker {w} sees that its last begin came late" -- src/worker/sender/ledger-check.ts (explainDifference)
    worker[w].step = leased & isUnwritten(w, redis.last) & worker[w].seen != redis.last ==>
    begin worker[w].seen := redis.last; end;
  rule "worker {w} objects" -- src/worker/sender/journal-audit.ts, src/ledger/lua/object-to-ledger.lua
    OBJECTS & !redis.objected[w] & !gone[w] & !agrees(w) ==> begin redis.objected[w] := true; end;
  rule "worker {w} reads what others wrote to its journal" -- src/worker/sender/ledger-check.ts (compareJournal)
    worker[w].step = leased & !worker[w].current & holds(w) & (!COMPARES | agrees(w)) ==>
    begin worker[w].current := true; end;
  ruleset p: Payout do
    rule "worker {w} settles payout {p}, which an ended sender left" -- src/worker/sender/recover-sends.ts
      worker[w].step = leased & holds(w) & redis.state[p] = sending & !isUnwritten(w, redis.token[p]) ==> begin
      alias t: redis.token[p] do
        if journal[w][t] = accepted then redis.state[p] := in_progress;
        elsif journal[w][t] = not_sent & !(SPARES_OTHERS & knowsOther(w, p, number[t], t)) then redis.state[p] := queued;
        else redis.state[p] := LEAVES_UNKNOWN ? unknown : queued; end;
      end; end;
    rule "worker {w} puts payout {p} back, whose begin came late" -- src/worker/sender/recover-sends.ts
      worker[w].step = leased & redis.state[p] = sending & isUnwritten(w, redis.token[p]) ==> begin
      if SPARES_OTHERS & knowsOther(w, p, number[redis.token[p]], redis.token[p]) then release(redis.token[p]);
      else redis.state[p] := queued; end; end;
    rule "worker {w} asks Redis to begin payout {p}" -- src/worker/sender/sender.ts (#begin)
      worker[w].step = leased & worker[w].ready & worker[w].current & tokens < SENDS
      & (!YIELDS_STILL | !worker[w].still) & redis.state[p] = queued
      & (!ASKS_JOURNAL | !knowsOther(w, p, nextNumber(p), 0)) ==> begin
      tokens := tokens + 1; of_[tokens] := p; number[tokens] := nextNumber(p);
      maker[tokens] := w; after[tokens] := worker[w].seen; coming[tokens] := true; unwritten[tokens] := true;
      worker[w].step := asking; worker[w].token := tokens; end;
  end;
  rule "worker {w} enters the send in its journal" -- src/journal/file-send-journal.ts
    worker[w].step = begun & (!REPLICA | !CONFIRMS | isConfirmed(worker[w].token)) ==> begin
    if JOURNALS_FIRST then append(w, worker[w].token, open); end; worker[w].step := journaled; end;
  rule "worker {w} puts its payout back unwritten" -- src/worker/sender/own-outcome-recorder.ts, src/ledger/lua/revert-send.lua
    isBegun(w) ==> begin
    alias t: worker[w].token; p: of_[worker[w].token] do
      if journal[w][t] != none then append(w, t, not_sent); end;
      if SPARES_OTHERS & knowsOther(w, p, number[t], t) then release(t);
      elsif NAMES_ATTEMPT & redis.state[p] = queued & nextNumber(p) = number[t] then
        redis.token[p] := t; redis.known[t] := true;
      elsif redis.state[p] = sending & redis.token[p] = t then redis.state[p] := queued; end;
    end; endAttempt(w); end;
  rule "worker {w} checks and writes its request" -- src/worker/sender/sender.ts (#write)
    A4 & worker[w].step = journaled & (!REREADS | worker[w].current) & !worker[w].expired ==> begin
    request[worker[w].token] := flying; worker[w].step := written; release(worker[w].token); end;
  rule "worker {w} checks its request, and is stopped before it writes"
    !A4 & worker[w].step = journaled & (!REREADS | worker[w].current) & !worker[w].expired ==>
    begin worker[w].step := checked; release(worker[w].token); end;
  rule "worker {w} goes on, and writes"
    worker[w].step = checked ==> begin request[worker[w].token] := flying; worker[w].step := written; end;
  rule "worker {w} is answered" -- src/gateway/responses.ts
    worker[w].step = written & (request[worker[w].token] = arrived | !A2 & request[worker[w].token] = flying) ==>
    begin worker[w].step := answered; end;
  rule "worker {w} notes the answer in its journal" -- src/worker/sender/own-outcome-recorder.ts (finish)
    worker[w].step = answered ==> begin append(w, worker[w].token, accepted); worker[w].step := noted; end;
  rule "worker {w} records the answer in Redis" -- src/ledger/lua/finish-send.lua
    worker[w].step = noted ==> begin finish(of_[worker[w].token], worker[w].token, true); endAttempt(w); end;
  rule "worker {w} gets no answer, and resets its connection" -- src/worker/sender/sender.ts (#resetOnceOthersMaySend)
    worker[w].step = written ==> begin finish(of_[worker[w].token], worker[w].token, false); endAttempt(w); end;
  rule "worker {w} is killed"
    kills < KILLS & worker[w].step != idle ==> begin kills := kills + 1; forgetLease(w); end;
  rule "worker {w}'s host is lost after it objected"
    !SHARED & kills < KILLS & redis.objected[w] & forall o: Worker do !gone[o] end ==> begin
    kills := kills + 1; gone[w] := true; clear journal[w]; forgetLease(w);
    if A5 then undefine copy; hasCopy := false; end; end; -- nor does Redis come back as it was before the objection
  rule "worker {w}'s host loses its journal"
    !A5 & exists t: Token do journal[w][t] != none end ==>
    begin for o: Worker do if SHARED | o = w then clear journal[o]; end; end; end;
end;
ruleset t: Token do
  rule "the begin of attempt {t} comes to Redis" -- src/ledger/lua/begin-send.lua
    coming[t] ==> begin
    alias w: maker[t]; p: of_[t] do
      if holds(w) & (!HEARTBEAT | !worker[w].older) & (!NAMES_LAST | redis.last = after[t])
        & (!STOPS_OBJECTED | !isObjected()) & (!ONE_SENDING | forall o: Payout do redis.state[o] != sending end)
        & redis.state[p] = queued & (!NAMES_ATTEMPT | nextNumber(p) = number[t]) then
        redis.state[p] := sending; redis.token[p] := t; redis.known[t] := true; redis.last := t;
        if isAsking(w, t) then
          worker[w].step := begun; worker[w].seen := t;
          for o: Token do if o != t & isUnwritten(w, o) then release(o); end; end;
        end;
      elsif isAsking(w, t) then endAttempt(w); end;
    end;
    coming[t] := false; if !unwritten[t] then release(t); end; end;
  rule "attempt {t} arrives at the gateway, and is paid"
    request[t] = flying ==>
    begin request[t] := arrived; if paid[of_[t]] < 2 then paid[of_[t]] := paid[of_[t]] + 1; end; end;
  rule "attempt {t} is lost on its way"
    request[t] = flying ==> begin request[t] := lost; end;
  ruleset w: Worker do
    rule "worker {w} tells Redis an outcome of its journal again" -- src/worker/sender/ledger-outcome-recorder.ts (replayAll)
      journal[w][t] = accepted & redis.known[t] & redis.token[of_[t]] = t & redis.state[of_[t]] = unknown ==>
      begin finish(of_[t], t, true); end;
  end;
  rule "the janitor asks the gateway for attempt {t}" -- src/worker/janitor.ts
    looks < LOOKS & sought = 0 & redis.known[t] & redis.state[of_[t]] = unknown ==> begin looks := looks + 1; sought := t; end;
end;
rule "the gateway finds what the janitor asks for"
  sought > 0 & answer = awaited & request[sought] = arrived ==> begin answer := same; end;
rule "the gateway finds a payment of another wallet or amount"
  sought > 0 & answer = awaited ==> begin answer := other; end;
rule "the gateway does not find what the janitor asks for"
  sought > 0 & answer = awaited ==> begin answer := missing; end;
rule "the janitor records what the gateway said" -- src/worker/janitor.ts
  sought > 0 & answer != awaited ==> begin
  alias p: of_[sought] do
    if answer = same | answer = other & !FINDS_SAME then
      if FINDS_AS_LATE then finish(p, sought, true); else redis.state[p] := in_progress; end;
    elsif answer = missing & redis.state[p] = unknown & !MISSING_IS_NOTHING then redis.state[p] := queued; end;
  end; sought := 0; answer := awaited; end;
ruleset p: Payout do
  rule "the gateway's status ends payout {p}" -- src/worker/poll-payout.ts
    redis.state[p] = in_progress ==> begin redis.state[p] := completed; end;
  rule "an operator says that payout {p} was not sent" -- src/operator/resolve-payout.ts, src/ledger/lua/change-payouts.lua
    redis.state[p] = unknown & (!HONEST | paid[p] = 0) &
    (!WAITS_FOR_STATED | forall t: Token do !isOnItsWay(t) | of_[t] != p end) ==> begin
    redis.state[p] := queued;
    for w: Worker do if WAITS_FOR_STATED & GUARD & isBegun(w) & of_[worker[w].token] = p then
      worker[w].expired := true; end; end; end;
  rule "an operator says that payout {p} was paid" -- src/operator/resolve-payout.ts
    redis.state[p] = unknown & paid[p] > 0 ==> begin redis.state[p] := completed; end;
  rule "another program pays payout {p}"
    !A6 & paid[p] < 2 ==> begin paid[p] := paid[p] + 1; end;
end;
-- A copy from the holder's last heartbeat, from before the objection, is not promised anything (A7).
rule "an operator adopts the ledger with all journals, and gives up those that are lost" -- src/operator/adoption.ts
  isObjected() ==> begin
  if exists w: Worker do gone[w] & redis.objected[w] end & DOUBTS_QUEUED then -- src/ledger/lua/mark-unsent-unknown.lua
    for p: Payout do if redis.state[p] = queued then redis.state[p] := unknown; end; end;
  end;
  for w: Worker do
    for t: Token do if wasSent(w, t) & !redis.known[t] then alias p: of_[t] do
      if redis.state[p] = queued | redis.state[p] = sending | redis.state[p] = unknown then
        if journal[w][t] = accepted then redis.state[p] := in_progress;
        elsif ADOPTS_UNKNOWN then redis.state[p] := unknown; end;
      end;
      if number[redis.token[p]] <= number[t] then redis.token[p] := t; end;
      redis.known[t] := true; redis.last := t;
    end; end; end;
    redis.objected[w] := false;
  end;
  undefine redis.owner; redis.released := false; if A7 & !SHARED & hasCopy then undefine copy.owner; end;
end;
rule "a copy of Redis is made, or its replica follows"
  falls < FALLS ==> begin copy := redis; hasCopy := true; end;
rule "Redis comes back older, and lacks a heartbeat"
  hasCopy ==> begin fallBack(); for w: Worker do worker[w].older := worker[w].step != idle; end; end;
rule "Redis comes back older within a heartbeat"
  hasCopy & (!A7 | forall w: Worker do redis.objected[w] -> copy.objected[w] end) ==> begin fallBack(); end;

invariant "never twice" forall p: Payout do paid[p] <= 1 end;
invariant "what is queued was not paid, unless a worker sees that Redis came back older" -- and is not on its way
  forall p: Payout do redis.state[p] = queued & (paid[p] > 0 | exists t: Token do isOnItsWay(t) & of_[t] = p end)
    -> exists w: Worker do !agrees(w) | gone[w] end end;
invariant "what is in progress or completed was paid"
  !A2 | forall p: Payout do redis.state[p] = in_progress | redis.state[p] = completed -> paid[p] > 0 end;
invariant "one payout is sending"
  !ONE_SENDING | forall p: Payout do forall o: Payout do redis.state[p] = sending & redis.state[o] = sending -> p = o end end;
-- Each accepted payout can be led to its end, also by what only an operator can do, while a send is left.
liveness "never lost"
  !isObjected() & forall p: Payout do redis.state[p] = completed | tokens = SENDS & redis.state[p] = queued end;
