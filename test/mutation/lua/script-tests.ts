const CONTRACT = 'ledger/redis-sender-ledger.test.ts';
const PAYOUTS = 'ledger/payout-ledger.test.ts';
const EVENTS = 'ledger/event-stream.test.ts';
const GROUPS = 'ledger/group-events.test.ts';
const RETENTION = 'worker/retention.test.ts';

/** The tests, by their path in `test`, that hold each script to its rules; those that notice most come first. */
export const scriptTests: Readonly<Record<string, readonly string[]>> = {
  'ack-group-event': [GROUPS],
  'acquire-lease': [CONTRACT],
  'adopt-ledger': [CONTRACT, 'ledger/adopt-ledger.test.ts', EVENTS],
  'adopt-send': [CONTRACT, RETENTION, EVENTS],
  'beat-lease': [CONTRACT],
  'begin-send': [CONTRACT],
  'change-state': [PAYOUTS, 'ledger/transitions.test.ts'],
  'enqueue-payouts': [PAYOUTS, 'ledger/payout-list.test.ts', RETENTION],
  'find-txhash': [PAYOUTS],
  'finish-send': [CONTRACT],
  'pause-account': [PAYOUTS, 'ledger/adopt-ledger.test.ts', EVENTS],
  prelude: [PAYOUTS, EVENTS, CONTRACT, RETENTION, 'ledger/transitions.test.ts'],
  'read-group-events': [GROUPS],
  'recover-sends': [CONTRACT],
  'release-lease': [CONTRACT],
  'remove-payouts': [RETENTION],
  'resume-account': [PAYOUTS, EVENTS, CONTRACT],
  'revert-send': [CONTRACT],
  'set-group-idle': [GROUPS],
  'trim-events': [RETENTION],
};
