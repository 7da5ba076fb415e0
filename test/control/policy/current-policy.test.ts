import { chmodSync, rmSync } from 'node:fs';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { InvalidConfigError } from '../../../src/base/errors.js';
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
});
const file = (): string => folder.at('policy.yaml');
const APPROVE = '{ approve: { by: finance, quorum: 1 } }';

function write({ within = '1h', uncovered = 'hold', platformId = 4242, over = 'wait' } = {}): void {
  const rule = `{ name: a, cap: { usd: "1", within: ${within} }, over: ${over} }`;
  const head = `version: 1, platformId: ${platformId}, default: ${uncovered}, groups: { finance: [alice] }`;
  rmSync(file(), { force: true });
  folder.write('policy.yaml', `{ ${head}, rules: [${rule}] }`, 0o600);
}

const open = (keyring?: Parameters<typeof readPolicyFile>[1]['keyring']): CurrentPolicy =>
  new CurrentPolicy(() => readPolicyFile(file(), { platformId: 4242, keyring }, 'PAYOUT_POLICY_FILE'), logger);

describe('the policy of a worker', () => {
  it('is told when it is read: hash, default, rules', () => {
    write();
    const { hash } = open();
    expect(logger.lines).toEqual([
      expect.objectContaining({
        fields: { policyFile: file(), policyHash: hash, default: 'hold', rules: ['a'] },
        message: 'payouts that the policy does not let pass are held',
      }),
    ]);
  });

  it.each<[string, Parameters<typeof write>[0] | undefined]>([
    ['is missing', undefined],
    ['is that of another account', { platformId: 7 }],
    ['needs keys that nobody has', { over: APPROVE }],
  ])('refuses the start where the file %s', (_, given) => {
    if (given !== undefined) write(given);
    expect(() => open()).toThrow(InvalidConfigError);
    expect(() => open()).toThrow(/^PAYOUT_POLICY_FILE: /);
  });

  it('is another after a reload, whole', () => {
    write();
    const current = open();
    const { policy, hash } = current;
    write({ uncovered: 'send' });
    current.reload();
    expect([policy.uncovered, current.policy.uncovered, current.reloadTrouble]).toEqual(['hold', 'send', undefined]);
    expect(current.hash).not.toBe(hash);
    expect(logger.lines.at(-1)).toMatchObject({ message: 'the policy was read again', fields: { default: 'send' } });
  });

  it.each<[string, Parameters<typeof write>[0] | (() => void), RegExp]>([
    ['makes no sense', { uncovered: 'maybe' }, /default must be hold or send \(got "maybe"\)/],
    [
      'is gone',
      () => {
        rmSync(file());
      },
      /cannot be read: ENOENT/,
    ],
    [
      'others can write',
      () => {
        chmodSync(file(), 0o666);
      },
      /is not trusted/,
    ],
    ['is that of another account', { platformId: 7 }, /platformId must be 4242/],
    ['has a window whose sends were not read', { within: '25h' }, /cap\.within is 25 h, .*last 24 h\. Restart it/],
  ])('stays what it was where the file %s, until it is good again', (_, spoil, message) => {
    write();
    const current = open();
    const { policy, hash } = current;
    if (typeof spoil === 'function') spoil();
    else write(spoil);
    current.reload();
    expect([current.policy, current.hash]).toEqual([policy, hash]);
    expect(current.reloadTrouble).toMatch(message);
    expect(logger.lines.at(-1)?.message).toContain('still counts');
    write();
    current.reload();
    expect(current.reloadTrouble).toBeUndefined();
  });

  it.each([
    ['1h', '24h', DAY_MS],
    ['7d', '7d', 7 * DAY_MS],
  ])('may get windows of a day, and as long as its longest at the start: %s, then %s', (first, later, longest) => {
    write({ within: first });
    const current = open();
    expect(current.longestWindowMs).toBe(longest);
    for (const within of ['1h', later]) {
      write({ within });
      current.reload();
      expect(current.reloadTrouble).toBeUndefined();
    }
  });

  it('is compared with the keyring as it is at the reload', () => {
    let revoked = false;
    const keyring = {
      get keys() {
        return keyringOf(entryOf(2, 'alice', 'approver', { revoked })).keys;
      },
    };
    write({ over: APPROVE });
    const current = open(keyring);
    revoked = true;
    current.reload();
    expect(current.reloadTrouble).toMatch(/quorum is 1, and of the group finance nobody has a valid key/);
  });
});

it('the policies of a worker are those of the accounts that have one, and refuse the start with all problems', () => {
  write();
  const openAll = (accounts: Parameters<typeof openPolicies>[0]) =>
    openPolicies(accounts, undefined, new ManualClock(), logger);
  expect([...openAll([{ platformId: 4242, policyFile: file() }, { platformId: 7 }]).keys()]).toEqual([4242]);
  const others = [7, 8].map((platformId) => ({ platformId, policyFile: file() }));
  expect(() => openAll(others)).toThrow(/platformId must be 7,[^]*platformId must be 8,/);
});
