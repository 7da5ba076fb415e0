import type { Pieces } from '../simulation/pieces.js';
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

export const PLANTED: readonly Planted[] = [
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
    name: 'an attempt not released before its write',
    plant: { file: SENDER, edits: [['    this.#ownAttempts.release(attempt);\n', '']] },
    scenario: 'slow',
    bounds: LOST_AND_OLDER,
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
    name: "guard counted from the begin's reply",
    plant: {
      file: SENDER,
      edits: [
        ['const beganAt =', 'let beganAt ='],
        ['const beganOn =', 'let beganOn ='],
        [
          'if (begun !== undefined) return begun;\n',
          'if (begun !== undefined) return begun;\n      [beganAt, beganOn] = [clock.now(), clock.wallNow()];\n',
        ],
      ],
    },
    scenario: 'slow',
    bounds: LATE_AND_STOPPED,
  },
  ...mistakes.map(({ name, pieces }): Planted => ({ name, plant: pieces, scenario: 'slow', bounds: ONE })),
];
