// What is mutated together, and the tests that have to notice. Small groups, because every test file of a group is loaded
// anew for each of its mutants.
export const groups = {
  states: {
    mutate: ['src/ledger/states.ts', 'src/ledger/keys.ts'],
    tests: ['test/ledger/keys.test.ts', 'test/ledger/states-doc.test.ts', 'test/ledger/transitions.test.ts'],
  },
  payouts: {
    mutate: ['src/ledger/payout.ts', 'src/ledger/payout-record.ts', 'src/ledger/payout-ledger.ts'],
    tests: ['test/ledger/payout.test.ts', 'test/ledger/payout-record.test.ts', 'test/ledger/payout-ledger.test.ts'],
  },
  views: {
    mutate: ['src/ledger/payout-list.ts', 'src/ledger/read-payouts.ts', 'src/ledger/account-stats.ts'],
    tests: ['test/ledger/payout-list.test.ts', 'test/ledger/account-stats.test.ts', 'test/ledger/read-payouts.test.ts'],
  },
  'sender-ledger': {
    mutate: [
      'src/ledger/redis-sender-ledger.ts',
      'src/ledger/refusal.ts',
      'src/ledger/scripts.ts',
      'src/ledger/witness.ts',
      'src/ledger/ledger-connection.ts',
      'src/ledger/adopt-ledger.ts',
    ],
    tests: [
      'test/ledger/redis-sender-ledger.test.ts',
      'test/ledger/durability.test.ts',
      'test/ledger/refusal.test.ts',
      'test/ledger/ledger-connection.test.ts',
      'test/ledger/adopt-ledger.test.ts',
    ],
  },
  signing: {
    mutate: ['src/gateway/signing.ts', 'src/gateway/request-signer.ts', 'src/gateway/schemas.ts'],
    tests: ['test/gateway/signing.test.ts', 'test/gateway/request-signer.test.ts', 'test/gateway/schemas.test.ts'],
  },
  answers: {
    mutate: ['src/gateway/answer.ts', 'src/gateway/withdraw-answer.ts', 'src/gateway/plain-decimal.ts'],
    tests: [
      'test/gateway/answer.test.ts',
      'test/gateway/withdraw-answer.test.ts',
      'test/gateway/plain-decimal.test.ts',
    ],
  },
  sender: {
    mutate: [
      'src/worker/sender.ts',
      'src/worker/pacer.ts',
      'src/worker/lease-keeper.ts',
      'src/worker/attempt-book.ts',
      'src/worker/send-journal.ts',
      'src/worker/breaker.ts',
    ],
    tests: [
      'test/worker/sender.test.ts',
      'test/worker/pacer.test.ts',
      'test/worker/lease-keeper.test.ts',
      'test/worker/attempt-book.test.ts',
      'test/worker/send-journal.test.ts',
      'test/worker/breaker-words.test.ts',
    ],
  },
  role: {
    mutate: ['src/worker/sender-role.ts'],
    tests: ['test/worker/sender-role.test.ts'],
  },
  journal: {
    mutate: ['src/worker/file-send-journal.ts'],
    tests: ['test/worker/file-send-journal.test.ts'],
  },
};
