import { onAnyClock, untilAborted } from '../../../src/base/clock.js';
import type { BeginSend, KnownJournal, Lease, SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import { type HeldLease, LeaseKeeper } from '../../../src/worker/sender/lease-keeper.js';
import type { ResumeAuthority, SendAuthority } from '../../../src/worker/sender/send-authority.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import { SenderLoop } from '../../../src/worker/sender/sender-loop.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { ScriptedGateway } from '../../doubles/scripted-gateway.js';
import { JOURNAL, nextBegin, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { countLedgers, RigLedger } from '../../world/world-rig.js';
import { afterTest } from './close-after-test.js';
import {
  hooked,
  IN_FLIGHT_MAX_MS,
  listeningLogger,
  makeRuntime,
  type SendRig,
  throwing,
  UNAVAILABLE,
} from './send-rig.js';

type Work = (active: ActiveSender, end: AbortSignal) => Promise<void>;

export type LoopRig = ReturnType<LoopWorld['make']>;

export interface LoopRigOptions {
  readonly name?: string;
  readonly journal?: MemoryJournal;
  readonly quarantineMs?: number;
  readonly authority?: SendAuthority;
  readonly resumeAuthority?: ResumeAuthority;
  readonly pause?: KeptPause;
  readonly work?: Work;
}

type EarlierSend = Partial<KnownJournal> & { readonly inFlightMs?: number; readonly payoutId?: string };

/** The ledger and the time that all processes share. They end with the test. */
export class LoopWorld {
  readonly clock = new ManualClock();
  readonly ledger = new RigLedger({ clock: this.clock, nextLedgerId: countLedgers() });
  readonly #processes: { readonly stop: AbortController; readonly ended: () => Promise<void> }[] = [];

  constructor() {
    afterTest(async () => this.endAll());
  }

  advance = async (ms: number) => this.clock.advance(ms);
  stateOf = async (payoutId: string) => (await this.ledger.readPayout(payoutId))?.state;
  objections = async () => (await this.ledger.readSender()).objections;
  lease = async () => (await this.ledger.readSender()).lease;

  /** Sends a payout as soon as it may, and returns what its sender objects to. */
  sendOnce =
    (payoutId = 'p'): Work =>
    async ({ sender, onMismatch }, end) => {
      const report = await sender.send(payoutId, end);
      if (report.kind === 'ledger_mismatch') onMismatch(report.mismatch);
      await untilAborted(end);
    };

  /** Sends a payout whenever it is queued, and returns what the sender objects to. */
  sendQueued =
    (payoutId = 'p'): Work =>
    async ({ sender, onMismatch }, end) => {
      while (!end.aborted) {
        if ((await this.stateOf(payoutId)) === 'queued') {
          const report = await sender.send(payoutId, end).catch(() => undefined);
          if (report?.kind === 'ledger_mismatch') onMismatch(report.mismatch);
        }
        await this.clock.sleep(200, end);
      }
    };

  /** A sender that is gone has taken the lease, and begun the first attempt of a payout. */
  async earlierSend({ inFlightMs = 500, payoutId = 'p', ...known }: EarlierSend = {}) {
    const { ledger } = this;
    const journal = { ...JOURNAL, ...known };
    ledger.enqueue(aPayout(payoutId));
    const epoch = (await ledger.acquireLease('earlier', await ledger.readSender(), journal, 0)) ?? 0;
    const lease = { owner: 'earlier', epoch };
    const asked = { ...(await nextBegin(ledger, lease, payoutId)), journal, inFlightMs };
    await ledger.beginSend(asked);
    return { lease, epoch, attempt: { payoutId, attempt: 1, token: asked.token } };
  }

  make(options: LoopRigOptions = {}) {
    const { clock, ledger } = this;
    const { name = 'one', journal = new MemoryJournal(`j-${name}`), quarantineMs = 0, resumeAuthority } = options;
    const { work = async (_: ActiveSender, end: AbortSignal) => untilAborted(end) } = options;
    const gateway = new ScriptedGateway(clock);
    const stop = new AbortController();
    const said: string[] = [];
    const [before, after]: [SendRig['before'], SendRig['after']] = [{}, {}];
    let [owners, tokens] = [0, 0];
    const runtime = makeRuntime({
      ...{ clock, senderLedger: hooked(ledger, before, after), journal, gateway },
      settings: { quarantineMs },
      authority: options.authority,
      makeOwner: () => `${name}.${(owners += 1)}`,
      makeToken: () => `${name}-t${(tokens += 1)}`,
      journalLocation: { host: `host-${name}`, dir: `/${name}` },
      logger: listeningLogger(said),
    });
    const pause = options.pause ?? (resumeAuthority && new KeptPause(runtime, resumeAuthority));
    const loop = new SenderLoop(runtime, stop.signal, work, pause);
    let running = Promise.resolve();
    const ended = async () => clock.until(running);
    this.#processes.push({ stop, ended });
    return {
      ...{ loop, journal, gateway, said, before, after, stop, ended },
      errors: () => said.filter((line) => line.startsWith('error')),
      start: () => void (running = loop.run()),
    };
  }

  start(options: LoopRigOptions = {}) {
    const rig = this.make(options);
    rig.start();
    return rig;
  }

  async endAll() {
    for (const { stop } of this.#processes) stop.abort();
    for (const { ended } of this.#processes) await ended();
  }
}

const CALLS = [
  ...(['readSender', 'acquireLease', 'renewLease', 'releaseLease', 'readPayout', 'findForgottenSends'] as const),
  ...(['beginSend', 'holdPayout', 'findSignedBefore', 'revertSend', 'finishSend', 'readSending'] as const),
  ...(['markSendsUnknown', 'object'] as const),
] satisfies readonly (keyof SenderLedger)[];

/** A process can ask Redis nothing, until what this returns is called. */
export function cutFromRedis({ before }: LoopRig): () => void {
  for (const call of CALLS) before[call] = throwing(UNAVAILABLE);
  return () => {
    for (const call of CALLS) before[call] = () => undefined;
  };
}

export const QUARANTINE_MS = 2_000;
export const AWAITING_ANSWER_MS = onAnyClock(IN_FLIGHT_MAX_MS);
const MINE: KnownJournal = { ...JOURNAL, journalId: 'j-mine', dir: '/mine' };

type Begin = Partial<BeginSend> & { readonly hasResponse?: boolean };

/** Keepers of one lease, and what happens to it. */
export class LeaseRig extends LoopWorld {
  readonly before: SendRig['before'] = {};
  readonly after: SendRig['after'] = {};
  readonly logged: string[] = [];
  readonly stop = new AbortController();
  readonly #acquired: HeldLease[] = [];
  mismatch: string | undefined;
  isStalled = false;
  /** For how long the machine was suspended, on a clock of its own. */
  suspendedMs = 0;
  readonly comparedAt: number[] = [];

  makeKeeper(settings: Partial<SenderRuntime['settings']> = {}, onlyWatches = false) {
    const runtime = makeRuntime({
      clock: this.clock,
      senderLedger: hooked(this.ledger, this.before, this.after),
      settings: { quarantineMs: QUARANTINE_MS, ...settings },
      ...{ journal: new MemoryJournal(MINE.journalId), journalLocation: MINE, makeOwner: () => 'me' },
      machineUptime: () => this.clock.now() + this.suspendedMs,
      ...{ logger: listeningLogger(this.logged), onlyWatches },
    });
    const audit: ConstructorParameters<typeof LeaseKeeper>[1] = {
      refuseStalled: () => this.isStalled,
      hasAllSends: ({ sendCount, lastJournalId }) => sendCount === 0 || lastJournalId === MINE.journalId,
      findMismatch: async () => {
        this.comparedAt.push(this.clock.now());
        return Promise.resolve(this.mismatch);
      },
    };
    return new LeaseKeeper(runtime, audit, () => undefined);
  }

  async acquire(keeper = this.makeKeeper()) {
    const held = await this.clock.until(keeper.acquire(this.stop.signal));
    if (held === undefined) throw new Error('the lease was not acquired');
    this.#acquired.push(held);
    return held;
  }

  watch(keeper = this.makeKeeper()): { readonly held: HeldLease | undefined } {
    const result: { held: HeldLease | undefined } = { held: undefined };
    void keeper.acquire(this.stop.signal).then((held) => {
      result.held = held;
      if (held !== undefined) this.#acquired.push(held);
    });
    return result;
  }

  /** Lets another process take the lease as it is. */
  async another(owner = 'other', journal = MINE) {
    const { ledger } = this;
    return { owner, epoch: (await ledger.acquireLease(owner, await ledger.readSender(), journal, 0)) ?? 0 };
  }

  async begin(lease: Lease, { hasResponse = false, ...change }: Begin = {}) {
    const { ledger } = this;
    ledger.enqueue(aPayout('p'));
    const begun = { ...(await nextBegin(ledger, lease, 'p')), journal: MINE, ...change };
    await ledger.beginSend(begun);
    if (hasResponse) await ledger.finishSend(begun, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
    return begun;
  }

  override async endAll() {
    this.stop.abort();
    for (const held of this.#acquired) held.stopHeartbeat();
    return super.endAll();
  }
}
