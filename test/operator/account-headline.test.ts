import { describe, expect, it } from '@jest/globals';
import { type LedgerObservation, type ObservedWorker, SenderLifeTracker } from '../../src/operator/account-poller.js';
import { accountHeadline, type Headline } from '../../src/operator/account-headline.js';

const NOW = 1_000_000;
const HOLDER = { owner: 'host:1:abc', epoch: 2, heartbeat: 9 };
const WORKER = { name: 'host:1', role: 'sender', at: NOW, startedAt: 0, version: '1', silentMs: 0 };
const LEDGER: LedgerObservation = {
  platformId: 7,
  ageMs: 0,
  wallNow: NOW,
  life: { ...HOLDER, kind: 'alive', silentMs: 300 },
  workers: [WORKER],
  pausedReason: undefined,
  objections: 0,
  due: 5,
  sending: 0,
  held: 0,
  unknown: 0,
  sinceSendMs: 900,
  watchedMs: 60_000,
  readyMs: 60_000,
};

function failed(failedAttempts: number): ObservedWorker {
  return { ...WORKER, lastError: 'No connection', lastErrorCode: 'GATEWAY_UNAVAILABLE', failedAttempts };
}

function unpolled(failedPolls: number): ObservedWorker {
  return { ...WORKER, pollError: 'No response', pollErrorCode: 'GATEWAY_UNAVAILABLE', failedPolls };
}

const REFUSED_POLL = { ...WORKER, pollError: 'The gateway refused /transactionstatus: unknown txhash' };

function judge(change: Partial<LedgerObservation>): Headline {
  return accountHeadline({ redis: { kind: 'up' }, ledger: { ...LEDGER, ...change } });
}

describe('the pulse', () => {
  it.each<[string, string, Partial<LedgerObservation>]>([
    ['good', 'Sending', {}],
    ['good', 'Idle', { due: 0 }],
    ['bad', 'Paused', { pausedReason: 'maintenance' }],
    ['bad', 'Stopped: ledger mismatch', { objections: 1, pausedReason: 'maintenance' }],
    ['bad', 'No worker', { life: { kind: 'none' }, workers: [] }],
    ['warn', 'Waiting for a sender', { life: { kind: 'none' }, workers: [{ ...WORKER, role: 'standby' }] }],
    ['bad', 'Sender without heartbeat', { life: { ...HOLDER, kind: 'silent', silentMs: 3_000 } }],
    ['warn', 'Checking', { life: { ...HOLDER, kind: 'checking' } }],
    ['bad', 'The worker refuses to send', { workers: [{ ...WORKER, role: 'refused', reason: 'its journal' }] }],
    ['warn', 'Gateway down', { workers: [failed(1)] }],
    ['bad', 'Gateway down', { workers: [failed(2)] }],
    ['bad', 'Sending fails', { workers: [{ ...WORKER, lastError: 'ENOSPC' }] }],
    ['bad', 'Journal disk', { workers: [{ ...WORKER, lastError: 'ENOSPC', lastErrorCode: 'JOURNAL_UNAVAILABLE' }] }],
    ['bad', 'Journal disk', { workers: [{ ...WORKER, role: 'refused', reason: 'no answer', cause: 'disk' }] }],
    ['bad', 'Redis cannot be used', { workers: [{ ...WORKER, role: 'refused', reason: 'OOM', cause: 'redis' }] }],
    [
      'bad',
      'Redis cannot be used',
      { life: { kind: 'none' }, writeRefusal: { reason: 'it is full', action: 'Free it.' } },
    ],
    ['bad', 'Sending fails', { workers: [{ ...WORKER, lastError: 'No connection to the gateway at x' }] }],
    ['good', 'Sending', { workers: [unpolled(1)] }],
    ['bad', 'Gateway down', { workers: [unpolled(2)] }],
    ['warn', 'Gateway down', { due: 0, workers: [unpolled(1)] }],
    ['good', 'Sending', { workers: [REFUSED_POLL] }],
    ['warn', 'Polling fails', { workers: [REFUSED_POLL], due: 0 }],
    ['bad', 'No response from the gateway', { workers: [{ ...WORKER, noResponse: true }] }],
    ['warn', 'First send in 7 s', { workers: [{ ...WORKER, holdOffUntil: NOW + 7_500 }] }],
    ['warn', 'Gateway slow', { sending: 1, sinceSendMs: 8_000 }],
    ['bad', 'Nothing is sent', { sinceSendMs: undefined, watchedMs: 20_000 }],
    ['good', 'Sending', { sinceSendMs: 3_600_000, readyMs: 800 }],
    ['warn', 'Holds payouts', { due: 0, held: 2 }],
    ['good', 'Sending', { held: 2 }],
    ['warn', 'Unknown payouts', { unknown: 2 }],
    ['warn', 'Unknown payouts', { unknown: 2, due: 0 }],
    ['bad', 'Paused', { due: 0, held: 2, pausedReason: 'maintenance' }],
  ])('is %s: %s', (tone, headline, change) => {
    expect(judge(change)).toMatchObject({ tone, headline });
  });

  it('says only that Redis does not respond, whatever was known before', () => {
    const redis = { kind: 'unavailable', sinceMs: 4_000, reason: 'no connection' } as const;
    const known = accountHeadline({ redis, ledger: LEDGER });
    expect(known).toMatchObject({ tone: 'bad', headline: 'Redis does not respond' });
    expect(known.detail).toContain('Workers that cannot reach it either');
    expect(accountHeadline({ redis, ledger: undefined }).detail).toContain('For 4 s: no connection');
  });

  it('tells the error, how often, and when the next try is due', () => {
    const failing = { ...WORKER, lastError: 'ENOSPC', failedAttempts: 3, nextRetryAt: NOW + 4_200 };
    expect(judge({ workers: [failing] }).detail).toBe(
      'The last 3 attempts ended before anything was sent: ENOSPC. Next try in 4 s.',
    );
  });

  it('believes the last query to the gateway where nothing else tells of it', () => {
    const idle = { redis: { kind: 'up' }, ledger: { ...LEDGER, due: 0 } } as const;
    const down = { failure: '/balance: ECONNREFUSED', failureCode: 'GATEWAY_UNAVAILABLE', currencies: [] };
    expect(accountHeadline(idle, { gateway: down })).toMatchObject({ tone: 'warn', headline: 'Gateway down' });
    expect(accountHeadline({ ...idle, ledger: LEDGER }, { gateway: down })).toMatchObject({ tone: 'good' });
    // It responded, but in another form.
    const odd = { failure: '/balance: it has a form that is not understood', currencies: [] };
    expect(accountHeadline(idle, { gateway: odd })).toMatchObject({ tone: 'warn', headline: 'Gateway query fails' });
  });

  it('says how many payouts are held, their sums, and what holds the first', () => {
    const held = { kind: 'policy', reason: 'refuse', rule: 'perDay', message: 'over 500 a day' } as const;
    const heldSums = [{ paymentId: 6, symbol: undefined, count: 2, amount: '77.5' }];
    const gateway = { failure: undefined, currencies: [{ paymentId: 6, name: 'USDT', usdRate: undefined }] };
    const ledger = { ...LEDGER, due: 0, held: 2 };
    const found = accountHeadline({ redis: { kind: 'up' }, ledger }, { gateway, heldSums, firstHeld: { held } });
    expect(found.detail).toBe(
      '2 payouts (77.5 USDT), and nothing else waits to be sent. The first, by the rule perDay, because: over 500 a day',
    );
    expect(found.command).toBe('payouts list --account 7 --state held');
  });

  it('names the standby that takes over or why it refuses to, and else the command that starts a worker', () => {
    const life = { ...HOLDER, kind: 'silent', silentMs: 3_000 } as const;
    const standby = { ...WORKER, name: 'host:2', role: 'standby' };
    const taken = judge({ life, workers: [WORKER, standby] });
    expect(taken.detail).toContain('host:2 stands by to take over');
    expect(taken.command).toBeUndefined();
    expect(judge({ life, workers: [WORKER, { ...standby, silentMs: 9_000 }] }).command).toBe('payouts worker');
    const refusing = { ...standby, role: 'refused', reason: 'its journal was not adopted' };
    expect(judge({ life, workers: [WORKER, refusing] })).toEqual({
      ...{ tone: 'bad', headline: 'The worker refuses to send', detail: 'host:2: its journal was not adopted' },
      ...{ command: 'payouts doctor --account 7', runbook: 'docs/runbooks/journal.md' },
    });
  });
});

describe('the life of a sender', () => {
  it('is known only from a heartbeat that rose while it was watched', () => {
    const watch = new SenderLifeTracker();
    watch.note(HOLDER, 0);
    expect(watch.life(400).kind).toBe('checking');
    watch.note({ ...HOLDER, heartbeat: 10 }, 400);
    expect(watch.life(900).kind).toBe('alive');
    watch.note({ ...HOLDER, heartbeat: 10 }, 800);
    expect(watch.life(3_300)).toMatchObject({ kind: 'silent', silentMs: 2_900 });
  });

  it('is unknown again after a pause of the watch, and is that of the process that took the lease', () => {
    const watch = new SenderLifeTracker();
    watch.note(HOLDER, 0);
    watch.note({ ...HOLDER, heartbeat: 50 }, 60_000);
    expect(watch.life(60_100).kind).toBe('checking');
    watch.note({ ...HOLDER, owner: 'other:2:x', epoch: 3, heartbeat: 0 }, 60_400);
    expect(watch.life(60_500)).toMatchObject({ kind: 'alive', owner: 'other:2:x' });
    watch.note(null, 60_800);
    expect(watch.life(60_900).kind).toBe('none');
  });
});
