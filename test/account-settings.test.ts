import { describe, expect, it } from '@jest/globals';
import { completeSettings, DEFAULT_ACCOUNT_SETTINGS } from '../src/base/settings.js';
import type { AccountOptions } from '../src/worker/payout-worker.js';
import { createPayoutWorker, type PayoutWorkerOptions } from '../src/control/payout-worker.js';

const SECRET_KEY = 'k-never-shown-0123456789';

/** The error of starting a worker with these settings; Redis is not contacted. */
async function errorMessageOf(
  settings: Partial<AccountOptions>,
  options: Partial<PayoutWorkerOptions> = {},
): Promise<string> {
  const account = { platformId: 7, baseUrl: 'https://gateway.example', secretKey: SECRET_KEY, ...settings };
  const redisUrl = 'redis://127.0.0.1:1';
  const worker = createPayoutWorker({ redisUrl, accounts: [account], journalDir: '/nowhere', ...options });
  return worker.then(
    async (started) => started.stop().then(() => 'started'),
    (error: unknown) => String(error),
  );
}

describe('settings of an account', () => {
  it.each<[Partial<AccountOptions>, string]>([
    [{ intervalMs: 999 }, 'intervalMs of account 7: must be a whole number from 1000 to 2147483647 (got 999)'],
    [{ intervalMs: NaN }, 'intervalMs of account 7: must be a whole number from 1000'],
    [{ intervalMs: 1_000.5 }, 'intervalMs of account 7: must be a whole number from 1000'],
    [{ inFlightMaxMs: -1 }, 'inFlightMaxMs of account 7: must be a whole number from 0'],
    [{ leaseMs: 499 }, 'leaseMs of account 7: must be a whole number from 500'],
    [{ quarantineMs: Infinity }, 'quarantineMs of account 7: must be a whole number from 0'],
    [{ timeoutMs: 99 }, 'timeoutMs of account 7: must be a whole number from 100'],
    [{ withdrawTimeoutMs: 99 }, 'withdrawTimeoutMs of account 7: must be a whole number from 100'],
    [{ maxRejectionsInARow: 0 }, 'maxRejectionsInARow of account 7: must be a whole number of at least 1'],
    [{ maxUnknownsInARow: 0 }, 'maxUnknownsInARow of account 7: must be a whole number of at least 1'],
    [{ pollRate: 0 }, 'pollRate of account 7: must be a whole number from 1 to 10000'],
    [{ pollMinMs: 20, pollMaxMs: 19 }, 'pollMinMs of account 7: must not be more than pollMaxMs, 19 (got 20)'],
    [{ retentionDays: 0 }, 'retentionDays of account 7: must be a whole number from 1'],
  ])('%j is refused before anything starts, and the secret key is not shown', async (settings, message) => {
    const shown = await errorMessageOf(settings);
    expect(shown).toContain(message);
    expect(shown).not.toContain(SECRET_KEY);
  });

  it('reports every problem at once', async () => {
    expect(await errorMessageOf({ intervalMs: 1, leaseMs: 1 })).toMatch(
      /intervalMs of account 7[\s\S]*leaseMs of account 7/,
    );
  });

  it('fills in the defaults for absent or undefined settings', () => {
    expect(completeSettings({})).toEqual(DEFAULT_ACCOUNT_SETTINGS);
    expect(completeSettings({ intervalMs: undefined, leaseMs: 2_000 })).toEqual({
      ...DEFAULT_ACCOUNT_SETTINGS,
      leaseMs: 2_000,
    });
  });
});

describe('settings of a worker', () => {
  it.each<[Partial<PayoutWorkerOptions>, string]>([
    [{ journalDir: '' }, 'journalDir: must not be empty'],
    [{ journalDays: 0 }, 'journalDays: must be a whole number from 1 to 36500 (got 0)'],
    [{ redisReplicas: NaN }, 'redisReplicas: must be a whole number of at least 0'],
    [{ redisReplicas: -1 }, 'redisReplicas: must be a whole number of at least 0 (got -1)'],
    [{ accounts: [] }, 'accounts: must name at least one account'],
  ])('%j is refused before anything starts', async (options, message) => {
    expect(await errorMessageOf({}, options)).toContain(message);
  });

  it('a REDIS_URL that breaks its rule is refused and not shown', async () => {
    const shown = await errorMessageOf({}, { redisUrl: `redis://user:${SECRET_KEY}` });
    expect(shown).toMatch(/^InvalidConfigError: redisUrl: /);
    expect(shown).not.toContain(SECRET_KEY);
  });
});
