import { rmSync } from 'node:fs';
import { beforeEach, expect, it } from '@jest/globals';
import { CurrentPolicy, openPolicies } from '../../../src/control/policy/current-policy.js';
import { readPolicyFile } from '../../../src/control/policy/policy-file.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { recordingLogger } from '../../gateway/support/test-client.js';
import { useFolder } from '../support/folder.js';
import { keyringOf } from '../support/keys.js';
import { DAY_MS, entryOf } from '../support/signed.js';

const folder = useFolder();
let logger: ReturnType<typeof recordingLogger>;
beforeEach(() => {
  logger = recordingLogger();
  write();
});
const file = (): string => folder.at('policy.yaml');

function write({ within = '1h', uncovered = 'hold', platformId = 4242, over = 'wait' } = {}): void {
  const rule = `{ name: a, cap: { usd: "1", within: ${within} }, over: ${over} }`;
  const head = `version: 1, platformId: ${platformId}, default: ${uncovered}, groups: { finance: [alice] }`;
  rmSync(file(), { force: true });
  folder.write('policy.yaml', `{ ${head}, rules: [${rule}] }`, 0o600);
}

const open = (keyring?: Parameters<typeof readPolicyFile>[1]['keyring']): CurrentPolicy =>
  new CurrentPolicy(() => readPolicyFile(file(), { platformId: 4242, keyring }, 'PAYOUT_POLICY_FILE'), logger);

it('the policy of a worker is another after a reload, whole, and each is told', () => {
  const current = open();
  const { policy, hash } = current;
  const fields = { policyFile: file(), policyHash: hash, default: 'hold', rules: ['a'] };
  expect(logger.lines).toMatchObject([{ fields, message: 'payouts that the policy does not let pass are held' }]);
  write({ uncovered: 'send' });
  current.reload();
  expect([policy.uncovered, current.policy.uncovered, current.reloadTrouble]).toEqual(['hold', 'send', undefined]);
  expect(current.hash).not.toBe(hash);
  expect(logger.lines.at(-1)).toMatchObject({ message: 'the policy was read again', fields: { default: 'send' } });
});

it('it stays what it was where the file is wrong, or has a window whose sends were not read, until it is good', () => {
  const current = open();
  const { policy, hash } = current;
  write({ within: '25h' });
  current.reload();
  expect([current.policy, current.hash]).toEqual([policy, hash]);
  expect(current.reloadTrouble).toMatch(/cap\.within is 25 h, .*last 24 h\. Restart it/);
  expect(logger.lines.at(-1)?.message).toContain('still counts');
  write();
  current.reload();
  expect(current.reloadTrouble).toBeUndefined();
});

it('it may get windows of a day, and as long as its longest at the start', () => {
  for (const [first, later, longest] of [
    ['1h', '24h', DAY_MS],
    ['7d', '7d', 7 * DAY_MS],
  ] as const) {
    write({ within: first });
    const current = open();
    expect(current.longestWindowMs).toBe(longest);
    for (const within of ['1h', later]) {
      write({ within });
      current.reload();
      expect(current.reloadTrouble).toBeUndefined();
    }
  }
});

it('it is compared with the keyring as it is at the reload', () => {
  let revoked = false;
  const keyring = {
    get keys() {
      return keyringOf(entryOf(2, 'alice', 'approver', { revoked })).keys;
    },
  };
  write({ over: '{ approve: { by: finance, quorum: 1 } }' });
  const current = open(keyring);
  revoked = true;
  current.reload();
  expect(current.reloadTrouble).toMatch(/quorum is 1, and of the group finance nobody has a valid key/);
});

it('the policies of a worker are those of the accounts that have one, and refuse the start with all problems', () => {
  const openAll = (accounts: Parameters<typeof openPolicies>[0]) =>
    openPolicies(accounts, undefined, new ManualClock(), logger);
  expect([...openAll([{ platformId: 4242, policyFile: file() }, { platformId: 7 }]).keys()]).toEqual([4242]);
  const others = [7, 8].map((platformId) => ({ platformId, policyFile: file() }));
  expect(() => openAll(others)).toThrow(/^PAYOUT_POLICY_FILE: .*platformId must be 7,[^]*platformId must be 8,/);
});
