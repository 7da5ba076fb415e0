import type { Pieces } from '../../world/worker.js';
import { mistakes } from '../simulation/planted/index.js';
import type { Bounds } from './explorer.js';
import type { SourceChange } from '../planted-source.js';
import { DEVIATION_KINDS } from './schedule.js';

/** A mistake, and what has to find it: a scenario, explored within bounds, or a test that was written for it. */
export type Planted =
  | {
      readonly name: string;
      readonly plant: Partial<Pieces> | SourceChange;
      readonly scenario: string;
      readonly bounds: Bounds;
    }
  | { readonly name: string; readonly plant: SourceChange; readonly test: string };

const ONE = { deviations: 1, kinds: DEVIATION_KINDS, isFocused: false, isPruned: false };
const LOST_AND_OLDER = { deviations: 2, kinds: ['lose', 'rollback'], isFocused: false, isPruned: false } as const;
const LATE_AND_STOPPED = { deviations: 2, kinds: ['hold', 'stop'], isFocused: true, isPruned: true } as const;

const KEEPER = 'worker/sender/lease-keeper.ts';
const SENDER = 'worker/sender/sender.ts';
const LEASE_TEST = 'test/worker/sender/lease-keeper.test.ts';
const LEDGER_TEST = 'test/ledger/redis-sender-ledger.test.ts';
const WATCH_TEST = 'test/worker/sender/lease-watch.test.ts';

/** Nothing of the like happens in the scenarios: a test was written for each. */
const FOUND_BY_TESTS: readonly Extract<Planted, { test: string }>[] = [
  {
    name: 'awaitingAnswer read before the lease is taken',
    plant: {
      file: KEEPER,
      edits: [
        ['async #begin(lease: Lease, { lease: before }: SenderView)', 'async #begin(lease: Lease, seen: SenderView)'],
        [
          'this.#holdOffMs(view, before?.released === true)',
          'this.#holdOffMs({ ...view, awaitingAnswer: seen.awaitingAnswer }, seen.lease?.released === true)',
        ],
      ],
    },
    test: LEASE_TEST,
  },
  {
    name: 'hold-off counted from before the lease is taken',
    plant: {
      file: KEEPER,
      edits: [
        ['this.#begin({ owner, epoch }, view)', 'this.#begin({ owner, epoch }, view, askedAt)'],
        ['{ lease: before }: SenderView): Promise', '{ lease: before }: SenderView, askedAt: number): Promise'],
        ['const wonAt = clock.now();', 'const wonAt = askedAt;'],
      ],
    },
    test: LEASE_TEST,
  },
  {
    name: 'pacer not told of sends without a response',
    plant: {
      file: SENDER,
      edits: [
        [
          "if (outcome.kind === 'unknown') pacer.afterNoResponse();\n    else pacer.afterResponse();",
          'pacer.afterResponse();',
        ],
      ],
    },
    test: 'test/worker/sender/sender.test.ts',
  },
  {
    name: 'no allowance for clocks that run faster',
    plant: { file: 'worker/sender/pacer.ts', edits: [['onAnyClock(inFlightMaxMs)', 'inFlightMaxMs']] },
    test: 'test/worker/sender/pacer.test.ts',
  },
  {
    name: 'awaitingAnswer flag ignored on take-over',
    plant: { file: KEEPER, edits: [['awaitingAnswer ? onAnyClock(guardMs + inFlightMs) + intervalMs : 0', '0']] },
    test: LEASE_TEST,
  },
  {
    name: 'lease by expiry',
    plant: {
      file: KEEPER,
      edits: [
        ['const askedAt = clock.now();', 'const askedAt = clock.wallNow();'],
        ['observed.since : clock.now(),', 'observed.since : clock.wallNow(),'],
      ],
    },
    test: WATCH_TEST,
  },
  {
    name: 'absent lease is free',
    plant: {
      file: KEEPER,
      edits: [['view.lease?.released === true ||', 'view.lease === undefined || view.lease.released ||']],
    },
    test: WATCH_TEST,
  },
  {
    name: 'attempt identified by its epoch',
    plant: { file: SENDER, edits: [['token: makeToken() }', 'token: `e${heldLease.lease.epoch}` }']] },
    test: 'test/worker/sender/sender.test.ts',
  },
  {
    name: 'send known by the number of its attempt',
    plant: {
      file: 'ledger/lua/prelude/attempts.lua',
      edits: [["or ''\n  if known == FORMER", "or ''\n  if known ~= '' then return true end\n  if known == FORMER"]],
    },
    test: LEDGER_TEST,
  },
  {
    name: 'stale count of sends accepted, and the journal not asked',
    plant: {
      file: 'ledger/lua/begin-send.lua',
      edits: [['if begun[1] ~= sends or begun[2] ~= last then return { -3, begun[1], begun[2] } end', '']],
    },
    test: LEDGER_TEST,
  },
  {
    name: 'adoption by whatever journals are there',
    plant: {
      file: 'operator/adoption.ts',
      edits: [['isOlder && !giveUp.includes(UNWITNESSED) ? survey.unwitnessed : []', '[]']],
    },
    test: 'test/operator/adoption.test.ts',
  },
  {
    name: 'not sent, stated while the request may be on its way',
    plant: { file: 'ledger/lua/change-payouts.lua', edits: [['if waitMs > 0 then return { -11, waitMs } end', '']] },
    test: LEDGER_TEST,
  },
];

/** What one deviation in the scenario `slow` does not come to. */
const ELSEWHERE: Readonly<Record<string, Pick<Extract<Planted, { bounds: Bounds }>, 'scenario' | 'bounds'>>> = {
  'pacing from the send instead of the response': { scenario: 'plain', bounds: { ...ONE, kinds: ['hold'] } },
  'no heartbeat during quarantine': { scenario: 'short-lease', bounds: { ...ONE, kinds: ['hold', 'stop'] } },
};

/** Only the simulation finds it. */
const NOT_FOUND = 'journal read only at the start';

/** The mistakes of the simulation that the exploration finds, too. */
const SIMULATED = mistakes.filter(
  ({ name }) => name !== NOT_FOUND && FOUND_BY_TESTS.every((planted) => planted.name !== name),
);

export const PLANTED: readonly Planted[] = [
  {
    name: 'an attempt not released before its write',
    plant: { file: SENDER, edits: [['    this.#ownAttempts.release(attempt);\n', '']] },
    scenario: 'slow',
    bounds: LOST_AND_OLDER,
  },
  {
    name: "guard counted from the begin's reply",
    plant: {
      file: SENDER,
      edits: [
        ['const beganAt =', 'let beganAt ='],
        ['const beganOn =', 'let beganOn ='],
        [
          'if (refusal !== undefined) return refusal;\n',
          'if (refusal !== undefined) return refusal;\n      [beganAt, beganOn] = [clock.now(), clock.wallNow()];\n',
        ],
      ],
    },
    scenario: 'slow',
    bounds: LATE_AND_STOPPED,
  },
  ...SIMULATED.map(({ name, pieces }): Planted => {
    return { name, plant: pieces, scenario: 'slow', bounds: ONE, ...ELSEWHERE[name] };
  }),
  ...FOUND_BY_TESTS,
];
