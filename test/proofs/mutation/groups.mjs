import { readdirSync } from 'node:fs';

// What is mutated together, and the tests that have to notice. Small groups, because every test file of a group is loaded
// again for each of its mutants.
export const groups = {
  states: {
    mutate: ['src/ledger/states.ts', 'src/ledger/keys.ts'],
    tests: ['test/ledger/transitions.test.ts'],
  },
  payouts: {
    mutate: [
      'src/ledger/payout.ts',
      'src/ledger/payout-record.ts',
      'src/ledger/control-record.ts',
      'src/ledger/payout-ledger.ts',
    ],
    tests: [
      'test/ledger/payout.test.ts',
      'test/ledger/payout-ledger.test.ts',
      'test/ledger/change-payouts.test.ts',
      'test/ledger/compact-ledger.test.ts',
    ],
  },
  views: {
    mutate: ['src/ledger/reads/payout-queries.ts', 'src/ledger/reads/account-stats.ts'],
    tests: ['test/ledger/payout-queries.test.ts', 'test/ledger/account-stats.test.ts'],
  },
  'sender-ledger': {
    mutate: [
      'src/ledger/redis-sender-ledger.ts',
      'src/ledger/sender-ledger.ts',
      'src/ledger/ledger-connection.ts',
      'src/ledger/sender-view.ts',
      'src/ledger/adopt-ledger.ts',
      'src/ledger/remove-payouts.ts',
    ],
    tests: [
      'test/ledger/redis-sender-ledger.test.ts',
      'test/ledger/durability.test.ts',
      'test/ledger/payout.test.ts',
      'test/ledger/ledger-connection.test.ts',
      'test/ledger/adopt-ledger.test.ts',
    ],
  },
  durability: {
    mutate: ['src/ledger/redis-durability.ts', 'src/ledger/confirm-write.ts'],
    tests: ['test/ledger/redis-durability.test.ts', 'test/ledger/durability.test.ts'],
  },
  gateway: {
    mutate: [
      'src/gateway/signing.ts',
      'src/gateway/endpoints.ts',
      'src/gateway/responses.ts',
      'src/gateway/compare-payment.ts',
    ],
    tests: ['test/gateway/requests.test.ts', 'test/gateway/responses.test.ts'],
  },
  sender: {
    mutate: [
      'src/worker/sender/sender.ts',
      'src/worker/sender/pacer.ts',
      'src/worker/sender/recover-sends.ts',
      'src/worker/sender/lease-keeper.ts',
      'src/worker/sender/ledger-check.ts',
      'src/worker/sender/attempt-recorder.ts',
      'src/worker/sender/kept-pause.ts',
      'src/gateway/stop-sign.ts',
    ],
    tests: [
      'test/worker/sender/sender.test.ts',
      'test/worker/sender/sender-begin.test.ts',
      'test/worker/sender/sender-journal.test.ts',
      'test/worker/sender/pacer.test.ts',
      'test/worker/sender/lease-keeper.test.ts',
      'test/worker/sender/lease-watch.test.ts',
      'test/worker/sender/attempt-recorder.test.ts',
      'test/worker/sender/recover-sends.test.ts',
      'test/worker/sender/ledger-check.test.ts',
      'test/worker/sender/blocked-words.test.ts',
    ],
  },
  'sender-loop': {
    mutate: [
      'src/worker/sender/sender-loop.ts',
      'src/worker/sender/send-report.ts',
      'src/worker/sender/journal-audit.ts',
      'src/worker/sender/recover-sends.ts',
    ],
    tests: [
      'test/worker/sender/sender-loop.test.ts',
      'test/worker/sender/sender-loop-mismatch.test.ts',
      'test/worker/sender/journal-audit.test.ts',
    ],
  },
  watch: {
    mutate: ['src/worker/restore-lost-jobs.ts'],
    tests: ['test/worker/jobs.test.ts'],
  },
  journal: {
    mutate: [
      'src/journal/file-send-journal.ts',
      'src/journal/journal-reader.ts',
      'src/journal/journal-files.ts',
      'src/journal/line-chain.ts',
      'src/journal/journal-retention.ts',
      'src/journal/control-view.ts',
      'src/control/audit/verify-journal.ts',
      'src/journal/journal-line.ts',
      'src/journal/parse-line.ts',
      'src/journal/journal-view.ts',
      'src/journal/send-journal.ts',
      'src/journal/find-mismatch.ts',
    ],
    tests: quickTestsIn('test/journal'),
  },
  operator: {
    mutate: [
      'src/operator/account-advice.ts',
      'src/operator/adoption.ts',
      'src/operator/survey-sends.ts',
      'src/operator/next-steps.ts',
    ],
    tests: quickTestsIn('test/operator'),
  },
};

function quickTestsIn(folder) {
  return readdirSync(new URL(`../../../${folder}`, import.meta.url))
    .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.slow.test.ts'))
    .map((name) => `${folder}/${name}`);
}
