import { readdirSync } from 'node:fs';

const pathsIn = (folder, end) => (names) => names.split(' ').map((name) => `${folder}/${name}${end}`);
const [ledger, gateway, sender, journal, operator] = ['ledger', 'gateway', 'worker/sender', 'journal', 'operator'].map(
  (folder) => ({ src: pathsIn(`src/${folder}`, '.ts'), tests: pathsIn(`test/${folder}`, '.test.ts') }),
);

function quickTestsIn(folder) {
  return readdirSync(new URL(`../../../${folder}`, import.meta.url))
    .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.slow.test.ts'))
    .map((name) => `${folder}/${name}`);
}

// What is mutated together, and the tests that have to notice. Small groups, because every test file of a group is loaded
// again for each of its mutants.
export const groups = {
  states: { mutate: ledger.src('states keys'), tests: ledger.tests('transitions') },
  payouts: {
    mutate: ledger.src('payout payout-record control-record payout-ledger'),
    tests: ledger.tests('payout payout-ledger change-payouts ledger-format'),
  },
  views: {
    mutate: ledger.src('payout-queries reads/account-stats'),
    tests: ledger.tests('payout-queries'),
  },
  'sender-ledger': {
    mutate: ledger.src('redis-sender-ledger sender-ledger ledger-connection sender-view adopt-ledger remove-payouts'),
    tests: ledger.tests('redis-sender-ledger durability payout ledger-connection adopt-ledger'),
  },
  durability: {
    mutate: ledger.src('redis-durability confirm-write'),
    tests: ledger.tests('redis-durability durability'),
  },
  gateway: {
    mutate: gateway.src(
      'v1/signing v1/endpoints exchange/responses compare-payment classify-withdrawal response-fields',
    ),
    tests: gateway.tests('messages gateway-client.read'),
  },
  sender: {
    mutate: [
      ...sender.src('sender pacer recover-sends lease-keeper ledger-check own-outcome-recorder kept-pause'),
      ...gateway.src('stop-sign'),
    ],
    tests: sender.tests('sender sender-begin sender-journal lease-keeper own-outcome-recorder kept-pause'),
  },
  'sender-loop': {
    mutate: sender.src('sender-loop send-report journal-audit'),
    tests: sender.tests('sender-loop journal-audit unadopted-journal'),
  },
  watch: { mutate: ['src/worker/restore-lost-jobs.ts'], tests: ['test/worker/jobs.test.ts'] },
  journal: {
    mutate: [
      ...journal.src('file-send-journal journal-reader journal-files line-chain journal-retention control-view'),
      ...journal.src('journal-line parse-line journal-view send-journal find-mismatch'),
      'src/control/audit/verify-journal.ts',
    ],
    tests: quickTestsIn('test/journal'),
  },
  operator: {
    mutate: operator.src('account-advice adoption survey-sends next-steps'),
    tests: quickTestsIn('test/operator'),
  },
};
