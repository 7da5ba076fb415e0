import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { InvalidConfigError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/logger.js';
import { CurrentPolicy, openPolicies } from '../../../src/control/policy/current-policy.js';
import { readPolicyFile } from '../../../src/control/policy/policy-file.js';
import { keyEntry, keyringOf, testKey } from '../support/keys.js';
import { ManualClock } from '../../doubles/manual-clock.js';

interface Line {
  readonly level: string;
  readonly facts: object;
  readonly message: string;
}

const DAY_MS = 86_400_000;
const ALICE = keyEntry(testKey(2), { name: 'alice', role: 'approver', person: 'alice' });
let folder: string;
let file: string;
let lines: Line[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'current-policy-'));
  file = join(folder, 'policy.yaml');
  lines = [];
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function logger(): Logger {
  const at =
    (level: string) =>
    (facts: object, message: string): void =>
      void lines.push({ level, facts, message });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => logger() };
}

function write({ within = '1h', uncovered = 'hold', platformId = 4242, over = 'wait' } = {}): void {
  const rule = `{ name: a, cap: { usd: "1", within: ${within} }, over: ${over} }`;
  writeFileSync(
    file,
    `{ version: 1, platformId: ${platformId}, default: ${uncovered}, groups: { finance: [alice] }, rules: [${rule}] }`,
    { mode: 0o600 },
  );
}

const open = (): CurrentPolicy =>
  new CurrentPolicy(
    () => readPolicyFile(file, { platformId: 4242, keyring: undefined }, 'PAYOUT_POLICY_FILE'),
    logger(),
  );

describe('the policy of a worker', () => {
  it('is told when it is read: hash, default, rules', () => {
    write();
    const { hash } = open();
    expect(lines).toEqual([
      {
        level: 'info',
        facts: { policyFile: file, policyHash: hash, default: 'hold', rules: ['a'] },
        message: 'payouts that the policy does not let pass are held',
      },
    ]);
  });

  it.each([
    ['is missing', () => undefined],
    [
      'is that of another account',
      () => {
        write({ platformId: 7 });
      },
    ],
    [
      'needs keys that nobody has',
      () => {
        write({ over: '{ approve: { by: finance, quorum: 1 } }' });
      },
    ],
  ])('refuses the start where the file %s', (_, prepare) => {
    prepare();
    expect(open).toThrow(InvalidConfigError);
    expect(open).toThrow(/^PAYOUT_POLICY_FILE: /);
  });

  it('is another after a reload, whole', () => {
    write();
    const current = open();
    const { policy, hash } = current;
    write({ uncovered: 'send' });
    current.reload();
    expect(policy.uncovered).toBe('hold');
    expect(current.policy.uncovered).toBe('send');
    expect(current.hash).not.toBe(hash);
    expect(current.reloadTrouble).toBeUndefined();
    expect(lines.at(-1)).toMatchObject({ message: 'the policy was read again', facts: { default: 'send' } });
  });

  it.each<[string, () => void, RegExp]>([
    [
      'makes no sense',
      () => {
        write({ uncovered: 'maybe' });
      },
      /default must be hold or send \(got "maybe"\)/,
    ],
    [
      'is gone',
      () => {
        rmSync(file);
      },
      /cannot be read: ENOENT/,
    ],
    [
      'others can write',
      () => {
        chmodSync(file, 0o666);
      },
      /is not trusted/,
    ],
    [
      'is that of another account',
      () => {
        write({ platformId: 7 });
      },
      /platformId must be 4242/,
    ],
    [
      'has a window whose sends were not read',
      () => {
        write({ within: '25h' });
      },
      /rules\.0\.cap\.within is 25 h, .*last 24 h\. Restart it/,
    ],
  ])('stays what it was where the file %s, until it is good again', (_, spoil, message) => {
    write();
    const current = open();
    const { policy, hash } = current;
    spoil();
    current.reload();
    expect(current.policy).toBe(policy);
    expect(current.hash).toBe(hash);
    expect(current.reloadTrouble).toMatch(message);
    expect(lines.at(-1)).toMatchObject({ level: 'error', message: expect.stringContaining('still counts') });
    rmSync(file, { force: true });
    write();
    current.reload();
    expect(current.reloadTrouble).toBeUndefined();
  });

  it('may get windows of a day, and as long as its longest at the start', () => {
    write();
    const daily = open();
    expect(daily.longestWindowMs).toBe(DAY_MS);
    write({ within: '24h' });
    daily.reload();
    expect(daily.reloadTrouble).toBeUndefined();

    write({ within: '7d' });
    const weekly = open();
    expect(weekly.longestWindowMs).toBe(7 * DAY_MS);
    write({ within: '1h' });
    weekly.reload();
    write({ within: '7d' });
    weekly.reload();
    expect(weekly.reloadTrouble).toBeUndefined();
  });

  it('is compared with the keyring as it is at the reload', () => {
    let keys = [ALICE];
    const keyring = {
      get keys() {
        return keyringOf(...keys).keys;
      },
    };
    write({ over: '{ approve: { by: finance, quorum: 1 } }' });
    const current = new CurrentPolicy(() => readPolicyFile(file, { platformId: 4242, keyring }), logger());
    keys = [{ ...ALICE, revoked: true }];
    current.reload();
    expect(current.reloadTrouble).toMatch(/quorum is 1, and of the group finance nobody has a valid key/);
  });
});

describe('the policies of a worker', () => {
  it('are those of the accounts that have one', () => {
    write();
    const accounts = [{ platformId: 4242, policyFile: file }, { platformId: 7 }];
    const policies = openPolicies(accounts, undefined, new ManualClock(), logger());
    expect([...policies.keys()]).toEqual([4242]);
  });

  it('refuse the start with the problems of all', () => {
    write();
    const accounts = [7, 8].map((platformId) => ({ platformId, policyFile: file }));
    expect(() => openPolicies(accounts, undefined, new ManualClock(), logger())).toThrow(
      /platformId must be 7,[^]*platformId must be 8,/,
    );
  });
});
