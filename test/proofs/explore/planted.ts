import type { Pieces } from '../../world/worker.js';
import type { SourceChange } from '../planted-source.js';
import { mistakes } from '../simulation/planted/mistakes.js';
import type { Bounds } from './explorer.js';
import { DEVIATION_KINDS } from './schedule.js';

/** A mistake, and what has to find it: a scenario, explored within bounds, or a test that was written for it. */
export type Planted = { readonly name: string } & (
  | { readonly plant: Partial<Pieces> | SourceChange; readonly scenario: string; readonly bounds: Bounds }
  | { readonly plant: SourceChange; readonly test: string }
);

export const ONE = { deviations: 1, kinds: DEVIATION_KINDS, isFocused: false, isPruned: false };
export const LOST_AND_OLDER = { ...ONE, deviations: 2, kinds: ['lose', 'rollback'] } as const;
export const LATE_AND_STOPPED = { deviations: 2, kinds: ['hold', 'stop'], isFocused: true, isPruned: true } as const;

const KEEPER = 'worker/sender/lease-keeper.ts';
const SENDER = 'worker/sender/sender.ts';
const LEASE_TEST = 'test/worker/sender/lease-keeper.test.ts';
const LEDGER_TEST = 'test/ledger/redis-sender-ledger.test.ts';
const WATCH_TEST = 'test/worker/sender/lease-watch.test.ts';
const SENDER_TEST = 'test/worker/sender/sender.test.ts';

type ByTest = readonly [name: string, test: string, file: string, edits: SourceChange['edits']];

/** Nothing of the like happens in the scenarios: a test was written for each. */
const FOUND_BY_TESTS: readonly ByTest[] = [
  [
    'awaitingAnswer read before the lease is taken',
    LEASE_TEST,
    KEEPER,
    [
      ['async #begin(lease: Lease, { lease: before }: SenderView)', 'async #begin(lease: Lease, seen: SenderView)'],
      [
        'this.#holdOffMs(view, before?.released === true)',
        'this.#holdOffMs({ ...view, awaitingAnswer: seen.awaitingAnswer }, seen.lease?.released === true)',
      ],
    ],
  ],
  [
    'hold-off counted from before the lease is taken',
    LEASE_TEST,
    KEEPER,
    [
      ['this.#begin({ owner, epoch }, view)', 'this.#begin({ owner, epoch }, view, askedAt)'],
      ['{ lease: before }: SenderView): Promise', '{ lease: before }: SenderView, askedAt: number): Promise'],
      ['const wonAt = clock.now();', 'const wonAt = askedAt;'],
    ],
  ],
  [
    'pacer not told of sends without a response',
    SENDER_TEST,
    SENDER,
    [
      [
        "if (outcome.kind === 'unknown') pacer.afterNoResponse();\n    else pacer.afterResponse();",
        'pacer.afterResponse();',
      ],
    ],
  ],
  [
    'no allowance for clocks that run faster',
    'test/worker/sender/pacer.test.ts',
    'worker/sender/pacer.ts',
    [['onAnyClock(inFlightMaxMs)', 'inFlightMaxMs']],
  ],
  [
    'awaitingAnswer flag ignored on take-over',
    LEASE_TEST,
    KEEPER,
    [['awaitingAnswer ? onAnyClock(guardMs + inFlightMs) + intervalMs : 0', '0']],
  ],
  [
    'lease by expiry',
    WATCH_TEST,
    KEEPER,
    [
      ['const askedAt = clock.now();', 'const askedAt = clock.wallNow();'],
      ['observed.since : clock.now(),', 'observed.since : clock.wallNow(),'],
    ],
  ],
  [
    'absent lease is free',
    WATCH_TEST,
    KEEPER,
    [['view.lease?.released === true ||', 'view.lease === undefined || view.lease.released ||']],
  ],
  [
    'a send that waits for a disk that hangs, and is then written',
    'test/worker/sender/sender-journal.test.ts',
    SENDER,
    [['return await this.#notSent(attempt, (error as Error).message, errorCode(error));', 'hasOthers = false;']],
  ],
  [
    'attempt identified by its epoch',
    SENDER_TEST,
    SENDER,
    [['token: makeToken() }', 'token: `e${heldLease.lease.epoch}` }']],
  ],
  [
    'send known by the number of its attempt',
    LEDGER_TEST,
    'ledger/lua/prelude/attempts.lua',
    [["or ''\n  if known == FORMER", "or ''\n  if known ~= '' then return true end\n  if known == FORMER"]],
  ],
  [
    'stale count of sends accepted, and the journal not asked',
    LEDGER_TEST,
    'ledger/lua/begin-send.lua',
    [['if begun[1] ~= sends or begun[2] ~= last then return { -3, begun[1], begun[2] } end', '']],
  ],
  [
    'adoption by whatever journals are there',
    'test/operator/adoption.test.ts',
    'operator/adoption.ts',
    [['isOlder && !giveUp.includes(UNWITNESSED) ? survey.unwitnessed : []', '[]']],
  ],
  [
    'not sent, stated while the request may be on its way',
    LEDGER_TEST,
    'ledger/lua/change-payouts.lua',
    [['if waitMs > 0 then return { -11, waitMs } end', '']],
  ],
];

const BY_TESTS = FOUND_BY_TESTS.map(([name, test, file, edits]): Planted => ({ name, test, plant: { file, edits } }));

/** What one deviation in the scenario `slow` does not come to. */
const ELSEWHERE: Readonly<Record<string, { readonly scenario: string; readonly bounds: Bounds }>> = {
  'pacing from the send instead of the response': { scenario: 'plain', bounds: { ...ONE, kinds: ['hold'] } },
  'no heartbeat during quarantine': { scenario: 'short-lease', bounds: { ...ONE, kinds: ['hold', 'stop'] } },
};

const NOT_FOUND = 'journal read only at the start';

const BY_SCENARIO = mistakes
  .filter(({ name }) => name !== NOT_FOUND && BY_TESTS.every((planted) => planted.name !== name))
  .map(({ name, pieces }): Planted => ({ name, plant: pieces, scenario: 'slow', bounds: ONE, ...ELSEWHERE[name] }));

const BEGUN = 'if (refusal !== undefined) return refusal;\n';

export const PLANTED: readonly Planted[] = [
  {
    name: 'an attempt not released before its write',
    plant: { file: SENDER, edits: [['    this.#ownAttempts.release(attempt);\n', '']] },
    ...{ scenario: 'slow', bounds: LOST_AND_OLDER },
  },
  {
    name: "guard counted from the begin's reply",
    plant: {
      file: SENDER,
      edits: [
        ['const beganAt =', 'let beganAt ='],
        ['const beganOn =', 'let beganOn ='],
        [BEGUN, `${BEGUN}      [beganAt, beganOn] = [clock.now(), clock.wallNow()];\n`],
      ],
    },
    ...{ scenario: 'slow', bounds: LATE_AND_STOPPED },
  },
  ...BY_SCENARIO,
  ...BY_TESTS,
];
