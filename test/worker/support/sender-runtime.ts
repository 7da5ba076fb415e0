import { silentLogger } from '../../../src/base/logger.js';
import { Pacer } from '../../../src/worker/sender/pacer.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { countLedgers, RigLedger } from '../../world/world-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { ScriptedGateway } from '../../doubles/scripted-gateway.js';

export const LEASE_MS = 10_000;
export const INTERVAL_MS = 1_010;
export const IN_FLIGHT_MAX_MS = 30_000;
export const GUARD_MS = 1_000;
export const DAY_MS = 24 * 60 * 60 * 1_000;
export const PLACE = { host: 'host-1', dir: '/journal' };

const SETTINGS: SenderRuntime['settings'] = {
  intervalMs: INTERVAL_MS,
  inFlightMaxMs: IN_FLIGHT_MAX_MS,
  leaseMs: LEASE_MS,
  quarantineMs: 0,
  maxRejectionsInARow: 5,
  maxPayoutRejectionsInARow: 50,
  maxUnknownsInARow: 2,
};

interface Given extends Partial<Omit<SenderRuntime, 'settings'>> {
  readonly clock?: ManualClock;
  readonly settings?: Partial<SenderRuntime['settings']>;
}

/** What the parts of a sender share, on doubles; a test gives those that it has in its hand. */
export function makeRuntime(given: Given = {}): SenderRuntime {
  const { clock = new ManualClock() } = given;
  const settings = { ...SETTINGS, ...given.settings };
  let tokens = 0;
  let owners = 0;
  return {
    clock,
    senderLedger: new RigLedger({ clock, nextLedgerId: countLedgers() }),
    journal: new MemoryJournal(),
    journalPlace: PLACE,
    journalKeptMs: DAY_MS,
    gateway: new ScriptedGateway(clock),
    audience: 'test',
    pacer: new Pacer(clock, settings),
    guardMs: GUARD_MS,
    hindrance: () => undefined,
    makeOwner: () => `one.${(owners += 1)}`,
    makeToken: () => `t-${(tokens += 1)}`,
    relayOutbox: async () => Promise.resolve(0),
    observer: noObserver,
    logger: silentLogger,
    ...given,
    settings,
  };
}
