import { describe, expect, it } from '@jest/globals';
import { type LedgerObservation, SenderLifeTracker } from '../../../src/dashboard/overview/account-poller.js';
import { checkPulse, type Pulse } from '../../../src/dashboard/overview/check-pulse.js';

const NOW = 1_000_000;
const HOLDER = { owner: 'host:1:abc', epoch: 2, heartbeat: 9 };
const WORKER = { name: 'host:1', role: 'sender', at: NOW, startedAt: 0, version: '1', silentMs: 0 };
const LEDGER: LedgerObservation = {
  ageMs: 0,
  wallNow: NOW,
  life: { ...HOLDER, kind: 'alive', silentMs: 300 },
  workers: [WORKER],
  pausedReason: undefined,
  objections: 0,
  due: 5,
  sending: 0,
  sinceSendMs: 900,
  watchedMs: 60_000,
  readyMs: 60_000,
};

function judge(change: Partial<LedgerObservation>): Pulse {
  return checkPulse({ redis: { kind: 'up' }, ledger: { ...LEDGER, ...change } });
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
    [
      'bad',
      'Gateway unreachable',
      { workers: [{ ...WORKER, lastError: 'No connection', lastErrorCode: 'GATEWAY_UNAVAILABLE' }] },
    ],
    ['bad', 'Sending fails', { workers: [{ ...WORKER, lastError: 'ENOSPC' }] }],
    ['bad', 'Sending fails', { workers: [{ ...WORKER, lastError: 'No connection to the gateway at x' }] }],
    [
      'bad',
      'Gateway does not respond',
      { workers: [{ ...WORKER, pollError: 'No response', pollErrorCode: 'GATEWAY_UNAVAILABLE' }] },
    ],
    ['bad', 'No response from the gateway', { workers: [{ ...WORKER, noResponse: true }] }],
    ['warn', 'First send in 7 s', { workers: [{ ...WORKER, holdOffUntil: NOW + 7_500 }] }],
    ['warn', 'Waiting for the gateway', { sending: 1, sinceSendMs: 8_000 }],
    ['bad', 'Nothing is sent', { sinceSendMs: undefined, watchedMs: 20_000 }],
    ['good', 'Sending', { sinceSendMs: 3_600_000, readyMs: 800 }],
  ])('is %s: %s', (tone, headline, change) => {
    expect(judge(change)).toMatchObject({ tone, headline });
  });

  it('says only that Redis does not respond, whatever was known before', () => {
    const redis = { kind: 'unavailable', sinceMs: 4_000, reason: 'no connection' } as const;
    expect(checkPulse({ redis, ledger: LEDGER })).toMatchObject({ tone: 'bad', headline: 'Redis does not respond' });
    expect(checkPulse({ redis, ledger: undefined }).detail).toContain('For 4 s: no connection');
  });

  it('tells the error, how often, and when the next try is due', () => {
    const failing = { ...WORKER, lastError: 'ENOSPC', failedAttempts: 3, nextRetryAt: NOW + 4_200 };
    expect(judge({ workers: [failing] }).detail).toBe(
      'The last 3 attempts ended before anything was sent: ENOSPC. Next try in 4 s.',
    );
  });

  it('believes the last query to the gateway where nothing else tells of it', () => {
    const observation = { redis: { kind: 'up' }, ledger: { ...LEDGER, due: 0 } } as const;
    const failure = { failure: '/balance: ECONNREFUSED', failureCode: 'GATEWAY_UNAVAILABLE' };
    expect(checkPulse(observation, failure)).toMatchObject({ tone: 'bad', headline: 'Gateway does not respond' });
    expect(checkPulse({ ...observation, ledger: LEDGER }, failure)).toMatchObject({ tone: 'good' });
  });

  it('says that payouts are sent, also where a poll of one fails', () => {
    const workers = [{ ...WORKER, pollError: 'The gateway refused /transactionstatus: unknown txhash' }];
    expect(judge({ workers })).toMatchObject({ tone: 'good', headline: 'Sending' });
    expect(judge({ workers, due: 0 })).toMatchObject({ tone: 'warn', headline: 'Polling fails' });
  });

  it('does not say that a gateway is gone which responded in another form', () => {
    const failure = '/balance: it has a form that is not understood';
    const pulse = checkPulse({ redis: { kind: 'up' }, ledger: { ...LEDGER, due: 0 } }, { failure });
    expect(pulse).toMatchObject({ tone: 'warn', headline: 'Gateway query fails' });
  });

  it('does not say what workers do behind a Redis that it cannot reach', () => {
    const redis = { kind: 'unavailable', sinceMs: 4_000, reason: 'no connection' } as const;
    expect(checkPulse({ redis, ledger: LEDGER }).detail).toContain('Workers that cannot reach it either');
  });

  it('names the standby that takes over, and else the command that starts a worker', () => {
    const life = { ...HOLDER, kind: 'silent', silentMs: 3_000 } as const;
    const standby = { ...WORKER, name: 'host:2', role: 'standby' };
    const taken = judge({ life, workers: [WORKER, standby] });
    expect(taken.detail).toContain('host:2 stands by to take over');
    expect(taken.command).toBeUndefined();
    expect(judge({ life, workers: [WORKER, { ...standby, silentMs: 9_000 }] }).command).toBe('payouts worker');
  });

  it('says why the only standby refuses to take over', () => {
    const life = { ...HOLDER, kind: 'silent', silentMs: 3_000 } as const;
    const refusing = { ...WORKER, name: 'host:2', role: 'refused', reason: 'its journal was not adopted' };
    expect(judge({ life, workers: [WORKER, refusing] })).toEqual({
      ...{ tone: 'bad', headline: 'The worker refuses to send', detail: 'host:2: its journal was not adopted' },
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
