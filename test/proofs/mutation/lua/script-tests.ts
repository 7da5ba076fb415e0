import { PRELUDE_PARTS } from '../../../../src/ledger/ledger-scripts.js';

const CONTRACT = 'ledger/redis-sender-ledger.test.ts';
const PAYOUTS = 'ledger/payout-ledger.test.ts';
const ADOPTION = 'ledger/adopt-ledger.test.ts';
const QUERIES = 'ledger/payout-queries.test.ts';
const EVENTS = 'ledger/events.test.ts';
const RETENTION = 'worker/retention.test.ts';
const STATISTICS = ['worker/statistics/statistics-keeper.test.ts'];

/** Of one script; of all, 36 s long, for what they share. */
export const INTERRUPTED = 'ledger/scripts/interrupted-scripts.slow.test.ts';

const PRELUDE_TESTS = Object.fromEntries(
  PRELUDE_PARTS.map((part) => [
    `prelude/${part}`,
    [
      PAYOUTS,
      EVENTS,
      CONTRACT,
      RETENTION,
      ADOPTION,
      QUERIES,
      'ledger/transitions.test.ts',
      'ledger/ledger-format.test.ts',
    ],
  ]),
);

export const scriptTests: Readonly<Record<string, readonly string[]>> = {
  'keep-acts': ['worker/sender/kept-acts.test.ts'],
  'lower-replicas': ['cli/commands/redis-replicas-command.test.ts', 'ledger/known-replicas.test.ts'],
  'mark-sends-unknown': [CONTRACT, EVENTS],
  'remove-entries': [CONTRACT],
  'comment-payout': ['operator/comment.test.ts'],
  'undo-cancel': ['operator/undo-cancel.test.ts'],
  'put-back-ended': ['worker/sender/kept-acts.test.ts', ADOPTION],
  'raise-replicas': ['ledger/known-replicas.test.ts'],
  'ack-group-event': [EVENTS],
  'acquire-lease': [CONTRACT, 'ledger/ledger-format.test.ts'],
  'add-approval': ['control/add-approval.test.ts'],
  'add-receipt': ['worker/late-receipts.test.ts'],
  'adopt-ledger': [CONTRACT, ADOPTION, EVENTS],
  'adopt-send': [CONTRACT, ADOPTION, RETENTION, EVENTS],
  'declare-new': ['operator/payout-operator.test.ts', EVENTS],
  'renew-lease': [CONTRACT, PAYOUTS],
  'begin-send': [CONTRACT, EVENTS],
  'bind-ledger': [ADOPTION],
  'count-payouts': STATISTICS,
  'change-payouts': ['ledger/change-payouts.test.ts', PAYOUTS, 'ledger/transitions.test.ts', EVENTS, CONTRACT],
  'enqueue-payouts': [
    ...[PAYOUTS, 'producer/payout-producer.test.ts', ADOPTION, QUERIES, RETENTION],
    'control/add-approval.test.ts',
  ],
  'find-forgotten-sends': [CONTRACT, ADOPTION],
  'finish-send': [CONTRACT, EVENTS, 'worker/janitor.test.ts'],
  'note-look-up': ['worker/janitor.test.ts'],
  'hold-payout': [
    CONTRACT,
    'ledger/hold-by-hand.test.ts',
    'cli/commands/change-commands.test.ts',
    'ledger/ledger-format.test.ts',
  ],
  'mark-unsent-unknown': [CONTRACT, ADOPTION],
  'object-to-ledger': [CONTRACT, QUERIES],
  'pause-account': [PAYOUTS, ADOPTION, EVENTS],
  ...PRELUDE_TESTS,
  'publish-event': [EVENTS, 'worker/reconciliation/reconciler.test.ts'],
  'read-group-events': [EVENTS],
  'read-sender': [CONTRACT, 'ledger/ledger-connection.test.ts', ADOPTION],
  'release-lease': [CONTRACT],
  'remove-payouts': [RETENTION, ADOPTION, ...STATISTICS],
  'resume-account': [PAYOUTS, EVENTS, CONTRACT],
  'revert-send': [CONTRACT, QUERIES],
  'set-group-idle': [EVENTS],
  'trim-events': [RETENTION],
  'write-statistics': STATISTICS,
};
