-- The pace of sends as a model that Rumur searches to its end: two requests never arrive closer than the gap, however
-- long the account goes on. One tick is a time in which nothing happens; every wait is a count-down. A clock may be a
-- tick fast or slow in each wait. What may happen in Redis is in send.m; here a lease can be taken at any time, because
-- no promise needs the lease time itself.

const -- In ticks.
  WORKERS: 2; REQUESTS: 2;
  GAP: 2; GUARD: 1; RESENDS: 1; FLIGHT: 2;

const -- The rules of the pace. Each can be switched off.
  INTERVAL: true;       -- the next request is written one interval after the response
  MARGIN: true;         -- a wait is so long that its time passes on any clock
  GUARD_COUNTS: true;   -- a request is written within the guard after its begin, or not at all
  WALL_FORBIDS: true;   -- the wall clock, which runs on while the machine is suspended, ends the guard too
  RESETS: true;         -- a request without a response is reset, so that its kernel sends nothing more
  WAITS_FLIGHT: true;   -- after a reset nothing is written while the network may still have the request
  PROBES: true;         -- then the gateway must first answer a harmless request
  AFTER_PROBE: true;    -- and one interval follows
  WAITS_OUT: true;      -- a new holder waits until an unanswered request can no longer arrive
  WAITS_GUARD: true;    -- that wait has the guard
  WAITS_KERNEL: true;   -- that wait has the time for which a kernel sends again
  HOLDS_OFF: true;      -- a new holder waits an interval at least
  ONE_HOLDER: true;     -- Redis lets only the holder begin

const -- The assumptions of docs/guarantees.md. Each can be switched off.
  A1: true; -- a request reaches the gateway in time, or never
  A2: true; -- a response is sent after its request arrived
  A4: true; -- a process is not stopped between the last check and the write

type
  Worker: scalarset(WORKERS);
  Request: scalarset(REQUESTS);
  Time: 0..GUARD + RESENDS + FLIGHT + 3;
  Drift: 0..2; -- a tick less to a tick more
  Place: enum { none, kernel, network, gateway }; -- the last one: received by a gateway that stands still
  Step: enum { standby, holding, begun, checked, written };

var
  worker: array[Worker] of record
    step: Step;
    wait: Time;       -- until its slot opens
    probe: boolean;   -- the gateway has to answer first
    guard: Time; wall: Time; -- of its begin, by the monotonic and by the wall clock
    suspended: boolean; -- its machine, with the monotonic clock
    heard: boolean;   -- its request arrived, and the response may come
  end;
  request: array[Request] of record place: Place; left: Time; of_: Worker; isOld: boolean; end;
  owner: Worker;      -- in Redis: the lease
  unanswered: Worker; -- in Redis: whose begin has no outcome yet
  wasReset: boolean;  -- in Redis: that one was reset
  stands: boolean;    -- the gateway
  since: 0..GAP;      -- the last arrival
  tooFast: boolean;

function onAnyClock(t: Time): Time; begin if MARGIN then return t + 2; else return t; end; end;
-- What of a wait passes on a clock that is a tick fast or slow.
function drifted(t: Time; d: Drift): Time; begin if t + d = 0 then return 0; else return t + d - 1; end; end;
function holds(w: Worker): boolean; begin return !isundefined(owner) & owner = w; end;
function isUnanswered(w: Worker): boolean; begin return !isundefined(unanswered) & unanswered = w; end;
function runs(w: Worker): boolean; begin return !worker[w].suspended; end;

procedure afterResponse(w: Worker; d: Drift); begin
  if INTERVAL then worker[w].wait := drifted(onAnyClock(GAP), d); else worker[w].wait := 0; end;
end;
procedure arrive(r: Request); begin
  if since < GAP then tooFast := true; end;
  since := 0;
  if !request[r].isOld then worker[request[r].of_].heard := true; end;
  undefine request[r]; request[r].place := none;
end;
procedure forget(w: Worker); begin
  worker[w].step := standby; worker[w].wait := 0; worker[w].probe := false; worker[w].guard := 0; worker[w].wall := 0;
  worker[w].heard := false;
  for r: Request do if request[r].place != none & request[r].of_ = w then request[r].isOld := true; end; end;
end;

startstate "nothing was sent" begin
  clear worker; undefine owner; undefine unanswered; wasReset := false; stands := false; since := GAP; tooFast := false;
  for r: Request do undefine request[r]; request[r].place := none; end;
end;

rule "a tick passes"
  !A1 | forall r: Request do request[r].place = none | request[r].place = gateway | request[r].left > 0 end ==> begin
  for w: Worker do
    if worker[w].wall > 0 then worker[w].wall := worker[w].wall - 1; end;
    if runs(w) then
      if worker[w].wait > 0 then worker[w].wait := worker[w].wait - 1; end;
      if worker[w].guard > 0 then worker[w].guard := worker[w].guard - 1; end;
    end;
  end;
  for r: Request do
    if request[r].place = kernel | request[r].place = network then
      if request[r].left > 0 then request[r].left := request[r].left - 1; end;
    end;
  end;
  if since < GAP then since := since + 1; end;
end;

ruleset w: Worker; d: Drift do
  rule "worker {w} takes the lease" -- src/worker/sender/lease-keeper.ts
    worker[w].step = standby & runs(w) & !holds(w) ==> begin
    owner := w;
    worker[w].step := holding;
    if HOLDS_OFF then worker[w].wait := drifted(onAnyClock(GAP), d); end;
    if !isundefined(unanswered) then
      worker[w].probe := PROBES;
      if WAITS_OUT then
        if wasReset then worker[w].wait := drifted(onAnyClock(FLIGHT), d);
        elsif WAITS_GUARD & WAITS_KERNEL then worker[w].wait := drifted(onAnyClock(GUARD + RESENDS + FLIGHT), d);
        elsif WAITS_KERNEL then worker[w].wait := drifted(onAnyClock(RESENDS + FLIGHT), d);
        else worker[w].wait := drifted(onAnyClock(GUARD + FLIGHT), d); end;
      end;
    end;
  end;
  rule "worker {w} begins a send" -- src/ledger/lua/begin-send.lua; a little before its slot opens
    worker[w].step = holding & runs(w) & worker[w].wait <= GUARD & !worker[w].probe & (!ONE_HOLDER | holds(w)) ==> begin
    unanswered := w; wasReset := false;
    worker[w].step := begun; worker[w].guard := drifted(GUARD, d); worker[w].wall := worker[w].guard;
  end;
  rule "worker {w} has its response" -- src/worker/sender/pacer.ts (afterResponse)
    worker[w].step = written & runs(w) & (!A2 | worker[w].heard) ==> begin
    forget(w); worker[w].step := holding;
    afterResponse(w, d);
    if isUnanswered(w) then undefine unanswered; end;
  end;
  rule "worker {w} has no response, and resets its connection" -- src/worker/sender/pacer.ts (afterNoResponse)
    worker[w].step = written & runs(w) ==> begin
    for r: Request do
      if RESETS & request[r].place = kernel & request[r].of_ = w then undefine request[r]; request[r].place := none; end;
    end;
    forget(w); worker[w].step := holding;
    if WAITS_FLIGHT then worker[w].wait := drifted(onAnyClock(FLIGHT), d); end;
    worker[w].probe := PROBES;
    if isUnanswered(w) then wasReset := true; end;
  end;
  rule "the gateway answers worker {w}'s probe" -- src/worker/sender/sender.ts (#probe)
    worker[w].step = holding & runs(w) & worker[w].probe & worker[w].wait = 0 & !stands ==> begin
    worker[w].probe := false;
    if AFTER_PROBE then afterResponse(w, d); end;
  end;
  rule "worker {w} hears that the request was reset" -- src/ledger/lua/renew-lease.lua
    worker[w].step = holding & runs(w) & holds(w) & !isundefined(unanswered) & !isUnanswered(w) & wasReset
    & worker[w].wait > drifted(onAnyClock(FLIGHT), d) ==> begin worker[w].wait := drifted(onAnyClock(FLIGHT), d); end;
end;
ruleset w: Worker do
  rule "worker {w} hears that the request was answered, or not written" -- src/ledger/lua/renew-lease.lua
    worker[w].step = holding & runs(w) & holds(w) & worker[w].probe & isundefined(unanswered) & worker[w].wait > 0 ==>
    begin worker[w].wait := 0; end;
  rule "worker {w} is not the sender any more, and puts back what it has not written" -- src/worker/sender/sender.ts
    (worker[w].step = holding | worker[w].step = begun) & runs(w) ==> begin
    if worker[w].step = begun & isUnanswered(w) then undefine unanswered; end;
    forget(w);
    if holds(w) then undefine owner; end;
  end;
  rule "worker {w} is killed"
    worker[w].step != standby ==> begin forget(w); if holds(w) then undefine owner; end; end;
  rule "worker {w}'s machine is suspended" -- not with a request in its kernel: A1
    runs(w) & worker[w].step != standby &
    (!A1 | forall r: Request do request[r].place = kernel -> request[r].of_ != w end) ==>
    begin worker[w].suspended := true; end;
  rule "worker {w}'s machine goes on"
    worker[w].suspended ==> begin worker[w].suspended := false; end;
  rule "worker {w}'s wall clock jumps"
    worker[w].wall > 0 & runs(w) ==> begin worker[w].wall := 0; end;
  ruleset r: Request do
    rule "worker {w} checks and writes its request" -- src/worker/sender/sender.ts (#write)
      request[r].place = none & runs(w)
      & (worker[w].step = checked | A4 & worker[w].step = begun & worker[w].wait = 0
         & (!GUARD_COUNTS | worker[w].guard > 0) & (!WALL_FORBIDS | !GUARD_COUNTS | worker[w].wall > 0)) ==> begin
      worker[w].step := written; worker[w].guard := 0; worker[w].wall := 0;
      request[r].place := kernel; request[r].left := RESENDS; request[r].of_ := w; request[r].isOld := false;
    end;
  end;
  rule "worker {w} checks its request, and is stopped before it writes"
    !A4 & worker[w].step = begun & runs(w) & worker[w].wait = 0 & worker[w].guard > 0 & worker[w].wall > 0 ==> begin
    worker[w].step := checked; worker[w].guard := 0; worker[w].wall := 0;
  end;
end;
ruleset r: Request do
  rule "a request leaves its host"
    request[r].place = kernel ==> begin request[r].place := network; request[r].left := FLIGHT; end;
  rule "a request is lost"
    request[r].place = kernel | request[r].place = network ==> begin undefine request[r]; request[r].place := none; end;
  rule "a request arrives"
    request[r].place = network & !stands ==> begin arrive(r); end;
  rule "a request comes to a gateway that stands still"
    request[r].place = network & stands ==> begin request[r].place := gateway; request[r].left := 0; end;
end;
rule "the gateway stands still"
  !stands ==> begin stands := true; end;
rule "the gateway goes on, and reads what came meanwhile"
  stands ==> begin
  stands := false;
  for r: Request do if request[r].place = gateway then arrive(r); end; end;
end;

invariant "never too fast" !tooFast;
