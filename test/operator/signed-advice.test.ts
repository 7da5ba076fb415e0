import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PAYOUT_STATES, type PayoutState } from '../../src/ledger/states.js';
import { adoptCommand, adviseAccount } from '../../src/operator/account-advice.js';
import { batchSteps, nextSteps } from '../../src/operator/next-steps.js';
import { runInProcess } from '../cli/support/in-process.js';
import { keyEntry, testKey } from '../control/support/keys.js';

/** Where operators sign, what they are told to run has the key that it needs, and nothing else has. */

const SIGNED = { isSigned: true };
const PAUSED = { platformId: 7, objections: [], journals: [], paused: true, pausedReason: 'a test' } as const;

function commandsOf(state: PayoutState, options = {}): (string | undefined)[] {
  return nextSteps({ payoutId: '--not-sent', state }, 7, options).map(({ command }) => command);
}

describe('with a keyring', () => {
  it('retry, resolve --not-sent, resume and adopt-ledger have the key', () => {
    expect(commandsOf('rejected', SIGNED)[0]).toBe('payouts retry --account 7 --key FILE --reason WHY -- --not-sent');
    expect(nextSteps({ payoutId: 'P', state: 'unknown' }, 7, SIGNED)[1]?.command).toBe(
      'payouts resolve --account 7 P --not-sent --key FILE --reason WHY',
    );
    expect(adviseAccount(PAUSED, SIGNED)[0]?.command).toBe('payouts resume --account 7 --key FILE --reason WHY');
    expect(adoptCommand(7, ['/journal'], ['x'], SIGNED)).toBe(
      'payouts adopt-ledger --account 7 --journal /journal --give-up x --key FILE --reason WHY',
    );
    const counts = Object.fromEntries(PAYOUT_STATES.map((state) => [state, 1])) as Record<PayoutState, number>;
    const commands = batchSteps('a --reason b', counts, 7, SIGNED).map(({ command }) => command);
    expect(commands.filter((command) => command?.includes('--key'))).toEqual([
      `(set -e
  payouts retry --account 7 --batch 'a --reason b' --dry-run --key FILE --reason WHY
  payouts retry --account 7 --batch 'a --reason b' --key FILE --reason WHY
)`,
    ]);
  });

  it('a payoutId that looks like an option is none', () => {
    const commandsFor = (payoutId: string): (string | undefined)[] =>
      nextSteps({ payoutId, state: 'unknown' }, 7, SIGNED).map(({ command }) => command);
    expect(commandsFor('--not-sent')).toEqual([
      'payouts resolve --account 7 --sent --txhash TXHASH --reason WHY -- --not-sent',
      'payouts resolve --account 7 --not-sent --key FILE --reason WHY -- --not-sent',
      'payouts resolve --account 7 --write-off --reason WHY -- --not-sent',
    ]);
    expect(commandsFor('--reason')[1]).toBe(
      'payouts resolve --account 7 --not-sent --key FILE --reason WHY -- --reason',
    );
  });

  it('cancel, release and resolve otherwise have none', () => {
    const all = PAYOUT_STATES.flatMap((state) => nextSteps({ payoutId: 'P', state }, 7, SIGNED));
    const keyed = all.flatMap(({ command = '' }) => (command.includes('--key') ? [command.split(' ')[1]] : []));
    expect(keyed.sort()).toEqual(['resolve', 'retry']);
  });
});

it('without a keyring nothing has a key', () => {
  const all = PAYOUT_STATES.flatMap((state) => commandsOf(state));
  expect([...all, adviseAccount(PAUSED)[0]?.command, adoptCommand(7, [], [])].join('\n')).not.toContain('--key');
});

describe('payouts stats', () => {
  let dir: string;
  beforeAll(async () => (dir = await mkdtemp(join(tmpdir(), 'payouts-advice-'))));
  afterAll(async () => rm(dir, { recursive: true }));

  it('shows the key where PAYOUT_KEYS_FILE is set', async () => {
    const file = join(dir, 'keys.json');
    await writeFile(file, JSON.stringify({ version: 1, keys: [keyEntry(testKey(1))] }), { mode: 0o600 });
    const platformId = String(100_000 + Math.floor(Math.random() * 1_000_000_000));
    const environment = { REDIS_URL: process.env['REDIS_URL'] ?? '', GATEWAY_PLATFORM_ID: platformId };
    await runInProcess(['pause', '--reason', 'a test'], environment);
    const unsigned = await runInProcess(['stats'], environment);
    expect(unsigned.stdout).toContain(`  payouts resume --account ${platformId} --reason WHY\n`);
    const signed = await runInProcess(['stats'], { ...environment, PAYOUT_KEYS_FILE: file });
    expect(signed.stdout).toContain(`  payouts resume --account ${platformId} --key FILE --reason WHY\n`);
  });
});
