import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../src/clock.js';
import { JOURNAL_WITNESS } from '../../src/ledger/witness.js';
import { Pacer } from '../../src/worker/pacer.js';
import { SenderRole, type SenderDuty } from '../../src/worker/sender-role.js';
import { noObserver } from '../../src/worker/worker-observer.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { MemoryLedger } from '../simulation/memory-ledger.js';
import { countLedgers } from '../simulation/support/memory-rig.js';
import { ManualClock } from './support/manual-clock.js';
import { MemoryJournal } from './support/memory-journal.js';
import { ScriptedGateway } from './support/scripted-gateway.js';
import { GUARD_MS, IN_FLIGHT_MAX_MS, INTERVAL_MS, listeningLogger } from './support/send-rig.js';

const LEASE_MS = 10_000;

let clock: ManualClock;
let ledger: MemoryLedger;
let journal: MemoryJournal;
let said: string[];
let pauses: string[];
/** Before each pause takes effect; may throw. */
let onPause: () => void;
/** What is done while the lease is held. */
let work: (duty: SenderDuty, end: AbortSignal) => Promise<void>;
let stop: AbortController;
let giveUp: AbortController;
let role: SenderRole;
let running: Promise<void>;
let startedAt: number;

beforeEach(() => {
  clock = new ManualClock();
  ledger = new MemoryLedger({ clock, nextLedgerId: countLedgers() });
  journal = new MemoryJournal();
  [said, pauses] = [[], []];
  onPause = () => undefined;
  work = async (_duty, end) => untilAborted(end);
  [stop, giveUp] = [new AbortController(), new AbortController()];
  let owners = 0;
  role = new SenderRole({
    clock,
    ledger,
    delivery: { deliverOutbox: async () => Promise.resolve(0), checkAll: async () => Promise.resolve(0) },
    journal,
    gateway: new ScriptedGateway(clock),
    pacer: new Pacer({ clock, intervalMs: INTERVAL_MS, inFlightMaxMs: IN_FLIGHT_MAX_MS }),
    settings: {
      intervalMs: INTERVAL_MS,
      inFlightMaxMs: IN_FLIGHT_MAX_MS,
      leaseMs: LEASE_MS,
      quarantineMs: 0,
      maxRejectionsInARow: 5,
      maxUnknownsInARow: 2,
    },
    guardMs: GUARD_MS,
    makeOwner: () => `one.${(owners += 1)}`,
    pause: async (reason) => {
      onPause();
      pauses.push(reason);
      return Promise.resolve(ledger.pause(reason, JOURNAL_WITNESS));
    },
    work: async (duty, end) => work(duty, end),
    observer: noObserver,
    logger: listeningLogger(said),
  });
});

afterEach(async () => {
  stop.abort();
  giveUp.abort();
  await clock.until(running);
});

function start(): void {
  startedAt = clock.now();
  running = role.run({ stop: stop.signal, giveUp: giveUp.signal });
}

describe('the role of the sender', () => {
  it('stands by until the lease has stood still, then binds the journal and works', async () => {
    start();
    await clock.advance(LEASE_MS - 1_000);
    expect(role.status).toEqual({ role: 'standby' });
    await clock.advance(2_000);
    expect(role.status).toEqual({ role: 'sender', epoch: 1 });
    expect(journal.ledger).toMatchObject({ ledgerId: 'ledger-1', epoch: 1, sends: 0 });
  });

  it('makes what an earlier sender left behind unknown before it works', async () => {
    ledger.enqueue(aPayout('p'));
    ledger.change({ payoutId: 'p', from: 'queued', to: 'sending' });
    let found: string | undefined;
    work = async (_duty, end) => {
      found = (await ledger.readPayout('p'))?.state;
      await untilAborted(end);
    };
    start();
    await clock.advance(LEASE_MS + 1_000);
    expect(found).toBe('unknown');
  });

  it('gives the lease back once its work is over, and not before', async () => {
    let endWork = (): void => undefined;
    work = async (_duty, end) => {
      await untilAborted(end);
      await new Promise<void>((resolve) => (endWork = resolve));
    };
    start();
    await clock.advance(LEASE_MS + 1_000);
    stop.abort();
    await clock.advance(5_000);
    expect((await ledger.readSender()).lease).toMatchObject({ released: false });
    endWork();
    await clock.until(running);
    expect((await ledger.readSender()).lease).toMatchObject({ released: true });
  });

  it('does not take a ledger that the journal objects to, says so once, and pauses the account', async () => {
    journal.ledger = { ledgerId: 'another', epoch: 3, sends: 7 };
    start();
    await clock.advance(LEASE_MS + 30_000);
    const reason = expect.stringContaining('flushed or exchanged');
    expect(role.status).toEqual({ role: 'refused', reason });
    expect(await ledger.readSender()).toMatchObject({ lease: undefined, pausedReason: reason });
    expect(said.filter((line) => line.startsWith('error'))).toHaveLength(1);

    journal.ledger = { ledgerId: 'ledger-1', epoch: 0, sends: 9 };
    await clock.advance(LEASE_MS);
    expect(role.status).toEqual({ role: 'refused', reason: expect.stringContaining('older copy') });
    expect(said.filter((line) => line.startsWith('error'))).toHaveLength(2);

    journal.ledger = undefined;
    await clock.advance(2_000);
    expect(role.status).toEqual({ role: 'standby' });
    await clock.advance(LEASE_MS + 3_000);
    expect(role.status).toMatchObject({ role: 'sender' });
  });

  it('takes a journal that cannot be read for an objection', async () => {
    journal.onReload = () => {
      throw new Error('EACCES');
    };
    start();
    await clock.advance(LEASE_MS + 2_000);
    expect(role.status).toEqual({ role: 'refused', reason: 'EACCES' });
  });

  it('says that a new journal witnesses nothing of before, where something was sent before', async () => {
    const warning = 'warn the send journal of this host is new: it can witness nothing that was sent before';
    start();
    await clock.advance(LEASE_MS + 1_000);
    expect(said).not.toContain(warning);
    ledger.adoptLedger({ epoch: 1, sends: 5 });
    journal.ledger = undefined;
    await clock.advance(2 * LEASE_MS);
    expect(said).toContain(warning);
    expect(journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: 3, sends: 5 });
  });

  it('waits, where a request may still be on its way, until it has arrived or never will', async () => {
    ledger.adoptLedger({ epoch: 1, sends: 0 });
    let quietUntil = 0;
    work = async ({ sender }, end) => {
      ledger.enqueue(aPayout('p'));
      await sender.send('p', end);
      quietUntil = clock.now();
      await untilAborted(end);
    };
    start();
    await clock.advance(LEASE_MS);
    const { role: now } = role.status;
    await clock.advance(GUARD_MS + IN_FLIGHT_MAX_MS + 2 * INTERVAL_MS + LEASE_MS);
    expect({ now, sends: (await ledger.readSender()).sends }).toEqual({ now: 'sender', sends: 1 });
    expect(quietUntil).toBeGreaterThanOrEqual(startedAt + LEASE_MS + GUARD_MS + IN_FLIGHT_MAX_MS + INTERVAL_MS);
  });

  it('pauses the account when the sender refuses the ledger, however long Redis is away, and keeps the lease until then', async () => {
    let isAway = true;
    onPause = () => {
      if (isAway) throw new Error('away');
    };
    work = async ({ onRefused }, end) => {
      onRefused('it came back older');
      await untilAborted(end);
    };
    start();
    await clock.advance(LEASE_MS + 20_000);
    expect(role.status).toEqual({ role: 'refused', reason: 'it came back older' });
    const { beat = 0 } = (await ledger.readSender()).lease ?? {};
    await clock.advance(5_000);
    expect((await ledger.readSender()).lease?.beat).toBeGreaterThan(beat);

    isAway = false;
    await clock.advance(1_000);
    expect(pauses).toEqual(['it came back older']);
    expect((await ledger.readSender()).lease).toMatchObject({ released: false });
  });

  it('pauses no longer when the process has to end', async () => {
    onPause = () => {
      throw new Error('away');
    };
    work = async ({ onRefused }, end) => {
      onRefused('it came back older');
      await untilAborted(end);
    };
    start();
    await clock.advance(LEASE_MS + 2_000);
    stop.abort();
    giveUp.abort();
    await clock.until(running);
    expect(pauses).toEqual([]);
  });

  it('starts anew where its work fails, without giving the lease back', async () => {
    const epochs: number[] = [];
    const recoverSends = ledger.recoverSends.bind(ledger);
    ledger.recoverSends = async (...args) => {
      epochs.push(args[0].epoch);
      return recoverSends(...args);
    };
    let works = 0;
    work = async (_duty, end) => {
      works += 1;
      if (works === 1) throw new Error('no queue');
      await untilAborted(end);
    };
    start();
    await clock.advance(LEASE_MS + 1_000);
    expect((await ledger.readSender()).lease).toMatchObject({ epoch: 1, released: false });
    expect(role.status).toEqual({ role: 'standby' });
    epochs.length = 0;
    await clock.advance(LEASE_MS + 4_000);
    expect(role.status).toEqual({ role: 'sender', epoch: 2 });
    expect(new Set(epochs)).toEqual(new Set([2]));
    expect(said).toContain('error the sender was interrupted and starts anew');
  });
});
