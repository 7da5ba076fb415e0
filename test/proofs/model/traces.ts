import { type Action, type ActionLog, MODELLED } from '../../world/action-log.js';
import { countCovers, type Constants, withConstants } from './checker.js';

/** What one run did, in the order in which it did it. */
export interface Trace {
  readonly name: string;
  readonly actions: readonly Action[];
  readonly workers: number;
  readonly payouts: number;
  readonly attempts: number;
}

/** The first action of a trace that no rule of the model allows. */
export interface Refusal {
  readonly name: string;
  readonly index: number;
  readonly action: Action;
}

/** The run went on after its last action: only what its actions name counts. */
export function toTrace(name: string, { actions }: ActionLog): Trace {
  const count = (named: readonly number[]) => 1 + Math.max(-1, ...named);
  return {
    ...{ name, actions },
    workers: count(actions.flatMap((action) => ('worker' in action ? [action.worker] : []))),
    payouts: count(actions.flatMap((action) => ('payout' in action ? [action.payout] : []))),
    attempts: actions.filter(({ kind }) => kind === 'asked').length,
  };
}

/** A step that is an action of its kind. `is` has what the rule's parameters must be. */
type Observed = Readonly<{ kind: Action['kind']; is: string }>;
/** A step that nobody sees, allowed just before an action of the same worker. */
type Unseen = Readonly<{ before: string }>;

const OF_WORKER = 'next.worker = w';
const CHANGED: Observed = { kind: 'changed', is: OF_WORKER };
const OF_PAYOUT: Observed = { kind: 'changed', is: `${OF_WORKER} & next.payout = p` };
const STATED: Observed = { kind: 'stated', is: 'next.payout = p' };
const UNSEEN: Unseen = { before: OF_WORKER };

/** What stands for each rule of send.m, by a part of its name. The others are not in these traces. */
const STEPS: Readonly<Record<string, Observed | Unseen>> = {
  'takes the lease': { kind: 'leased', is: OF_WORKER },
  'gives the lease back': { kind: 'released', is: OF_WORKER },
  'has waited': UNSEEN,
  'reads what others wrote': UNSEEN,
  'last begin came late': UNSEEN,
  'which an ended sender left': OF_PAYOUT,
  'whose begin came late': OF_PAYOUT,
  'asks Redis to begin': { kind: 'asked', is: `${OF_WORKER} & next.payout = p` },
  'the begin of attempt {t} comes to Redis': { kind: 'begun', is: 'next.attempt = t' },
  'enters the send': { kind: 'entered', is: OF_WORKER },
  'puts its payout back unwritten': CHANGED,
  'checks and writes': { kind: 'written', is: OF_WORKER },
  'is answered': UNSEEN,
  'notes the answer': { kind: 'noted', is: OF_WORKER },
  'records the answer': CHANGED,
  'gets no answer': CHANGED,
  'arrives at the gateway': { kind: 'arrived', is: 'next.attempt = t' },
  'is lost on its way': { kind: 'lost', is: 'next.attempt = t' },
  'tells Redis an outcome': CHANGED,
  "gateway's status ends": STATED,
  'says that payout {p} was not sent': STATED,
  'says that payout {p} was paid': STATED,
};

const KINDS: readonly Action['kind'][] = [
  ...(['leased', 'released', 'begun', 'entered', 'written', 'noted', 'asked'] as const),
  ...(['changed', 'stated', 'arrived', 'lost', 'refused', 'emptied'] as const),
];

/**
 * Makes a batch of traces one program: send.m with a start for each trace, and rules that fire only if they are its next
 * action. After an action of a payout, the payout must have the state that it had in the run.
 */
export async function findRefused(model: string, traces: readonly Trace[]): Promise<readonly Refusal[]> {
  const ends = await countCovers(toProgram(model, traces, false));
  const refused = traces.filter(({ actions }, trace) => ends.get(`${trace} ${actions.length}`) === 0);
  if (refused.length === 0) return [];
  const reached = await countCovers(toProgram(model, refused, true));
  return refused.flatMap(({ name, actions }, trace) => {
    const index = actions.findIndex((_, place) => reached.get(`${trace} ${place + 1}`) === 0);
    const action = actions[index];
    return action === undefined ? [] : [{ name, index, action }];
  });
}

/** @param all - asks whether each action is reached, not only the last */
function toProgram(model: string, traces: readonly Trace[], all: boolean): string {
  const highest = (count: (trace: Trace) => number) => Math.max(1, ...traces.map(count));
  const bounds: Constants = {
    ...{ WORKERS: highest(({ workers }) => workers), PAYOUTS: highest(({ payouts }) => payouts) },
    ...{ SENDS: highest(({ attempts }) => attempts), KILLS: 0, FALLS: 0, SHARED: true },
    // Runs cut workers off from Redis that do not stand still.
    UNCUT: false,
  };
  const length = highest(({ actions }) => actions.length);
  return [
    withSteps(withConstants(model, bounds).replace(/^(invariant|liveness) [^]*/m, ''))
      .replace(/scalarset\((\w+)\)/g, '0..$1 - 1')
      .replace(
        /^startstate ".+?" begin/m,
        `${declare(traces, length)}\nruleset run: 0..${traces.length - 1} do startstate begin`,
      )
      .replace(/^(.*do undefine of_.*)\nend;/m, '$1\n  trace := run; place := 0; clear previous; look();\nend; end;'),
    FINER,
    ...traces.flatMap(({ actions }, trace) =>
      actions.flatMap((_, index) => {
        const place = index + 1;
        if (!all && place < actions.length) return [];
        return `cover "${trace} ${place}" trace = ${trace} & place = ${place} & fits();`;
      }),
    ),
  ].join('\n');
}

/** Steps that send.m leaves out, or takes as one with the next. */
const FINER = `
ruleset w: Worker do
  rule "the disk of worker {w} does not take the answer, which Redis gets"
    fits() & next.kind = ${KINDS.indexOf('changed')} & next.worker = w & worker[w].step = answered ==> begin
    worker[w].step := noted;
  end;
  rule "worker {w} notes that it wrote nothing, and ends before Redis hears of it"
    fits() & next.kind = ${KINDS.indexOf('changed')} & next.worker != w & isBegun(w)
    & journal[w][worker[w].token] != none ==> begin
    append(w, worker[w].token, not_sent); endAttempt(w);
  end;
  ruleset p: Payout do
    rule "worker {w} settles payout {p}, whose acceptance came to its journal after it had read it"
      fits() & next.kind = ${KINDS.indexOf('changed')} & next.worker = w & next.payout = p & worker[w].step = leased
      & holds(w) & redis.state[p] = sending & !isUnwritten(w, redis.token[p])
      & journal[w][redis.token[p]] = accepted ==> begin
      go(); redis.state[p] := unknown;
    end;
  end;
  rule "a begin of worker {w} is refused, which it does not hear"
    fits() & next.kind = ${KINDS.indexOf('refused')} & next.worker = w ==> begin go(); coming[previous.attempt] := false; end;
  rule "a begin of worker {w} is refused, and changes nothing"
    fits() & next.kind = ${KINDS.indexOf('refused')} & next.worker = w ==> begin
    go(); coming[previous.attempt] := false;
    if isAsking(w, previous.attempt) then endAttempt(w); end;
  end;
end;
rule "the host of all workers loses its disk, and no send is forgotten"
  fits() & next.kind = ${KINDS.indexOf('emptied')} ==> begin go(); clear journal; end;
ruleset p: Payout do
  rule "an operator names the transaction of payout {p}, whose end comes later"
    fits() & next.kind = ${KINDS.indexOf('stated')} & next.payout = p & redis.state[p] = unknown & paid[p] > 0 ==> begin
    go(); redis.state[p] := in_progress;
  end;
end;`;

/** Binds each rule to its action; a rule that is no step of these traces never fires. */
function withSteps(model: string) {
  const parts = Object.keys(STEPS);
  return model.replace(
    /rule "(.+?)"((?: *--[^\n]*)?\s)(.*?)==>\s+begin/gs,
    (_, name: string, gap: string, guard: string) => {
      const part = parts.find((each) => name.includes(each));
      const step = STEPS[part ?? ''];
      const when =
        step === undefined
          ? 'false'
          : 'before' in step
            ? step.before
            : `next.kind = ${KINDS.indexOf(step.kind)} & ${step.is}`;
      const goes = step !== undefined && 'kind' in step ? ' go();' : '';
      return `rule "${name}"${gap}fits() & ${when} & (${guard}) ==> begin${goes}`;
    },
  );
}

/** More than any number of an action. */
const BASE = 1_000;

/** One number from 1 for an action: Rumur's time rises with the square of the statements. */
function toCode(action: Action): number {
  const numbers = [
    KINDS.indexOf(action.kind),
    'worker' in action ? action.worker : 0,
    'payout' in action ? action.payout : 0,
    'attempt' in action ? action.attempt : 0,
    'state' in action ? MODELLED.indexOf(action.state) + 1 : 0,
  ];
  if (numbers.some((number) => number >= BASE)) throw new Error(`a number of ${JSON.stringify(action)} is too large`);
  return numbers.reduceRight((code, number) => code * BASE + number, 0) + 1;
}

function declare(traces: readonly Trace[], length: number) {
  const places = traces.flatMap(({ actions }, trace) =>
    actions.map((action, place) => `case ${trace * length + place}: code := ${toCode(action)};`),
  );
  return `type Action: record
  kind: 0..${KINDS.length}; worker: Worker; payout: Payout; attempt: Token; state: State; hasState: boolean;
end;
var trace: 0..${traces.length}; place: 0..${length}; next: Action; previous: Action;
procedure look(); var code: 0..${BASE ** 5}; begin
  clear next; next.kind := ${KINDS.length}; code := 0;
  switch trace * ${length} + place\n${places.join('\n')}\nend;
  if code > 0 then
    code := code - 1;
    next.kind := code % ${BASE}; code := code / ${BASE};
    next.worker := code % ${BASE}; code := code / ${BASE};
    next.payout := code % ${BASE}; code := code / ${BASE};
    next.attempt := code % ${BASE}; code := code / ${BASE};
    next.hasState := code > 0;
    switch code
${MODELLED.map((state, index) => `case ${index + 1}: next.state := ${state};`).join('\n')}
    end;
  end;
end;
procedure go(); begin previous := next; place := place + 1; look(); end;
function fits(): boolean; begin return previous.hasState -> redis.state[previous.payout] = previous.state; end;`;
}
