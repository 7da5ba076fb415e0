import { untilAborted } from '../../../src/base/clock.js';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import type { ResumeAuthority, SendAuthority } from '../../../src/worker/sender/send-authority.js';
import { SenderLoop } from '../../../src/worker/sender/sender-loop.js';
import { MemoryLedger } from '../../doubles/ledger/memory-ledger.js';
import { countLedgers } from '../../doubles/ledger/memory-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { ScriptedGateway } from '../../doubles/scripted-gateway.js';
import { hooked, listeningLogger, type SendRig } from './send-rig.js';
import { makeRuntime } from './sender-runtime.js';

export { DAY_MS, LEASE_MS } from './sender-runtime.js';

/** One worker process of an account. */
export interface LoopRig {
  readonly loop: SenderLoop;
  readonly journal: MemoryJournal;
  readonly gateway: ScriptedGateway;
  /** What was logged, as `level message`. */
  readonly said: string[];
  /** What happens before a call of the ledger takes effect; may throw. */
  readonly before: SendRig['before'];
  readonly after: SendRig['after'];
  readonly stop: AbortController;
  start(): void;
  /** Resolves once the process has ended. */
  readonly ended: () => Promise<void>;
}

/** The ledger and the time that all processes share. */
export interface LoopWorld {
  readonly clock: ManualClock;
  readonly ledger: MemoryLedger;
  readonly rigs: LoopRig[];
}

export function makeLoopWorld(): LoopWorld {
  const clock = new ManualClock();
  return { clock, ledger: new MemoryLedger({ clock, nextLedgerId: countLedgers() }), rigs: [] };
}

export interface LoopRigOptions {
  readonly name?: string;
  readonly journal?: MemoryJournal;
  readonly quarantineMs?: number;
  readonly authority?: SendAuthority;
  readonly resumeAuthority?: ResumeAuthority;
  readonly pause?: KeptPause;
  /** What is done while the lease is held. */
  readonly work?: (active: ActiveSender, end: AbortSignal) => Promise<void>;
}

export function makeLoop(world: LoopWorld, options: LoopRigOptions = {}): LoopRig {
  const { clock, ledger } = world;
  const { name = 'one', journal = new MemoryJournal(`j-${name}`), quarantineMs = 0 } = options;
  const { work = async (_: ActiveSender, end: AbortSignal) => untilAborted(end) } = options;
  const gateway = new ScriptedGateway(clock);
  const stop = new AbortController();
  const said: string[] = [];
  const before: SendRig['before'] = {};
  const after: SendRig['after'] = {};
  const port: SenderLedger = hooked(ledger, before, after);
  let owners = 0;
  let tokens = 0;
  const runtime = makeRuntime({
    clock,
    senderLedger: port,
    journal,
    gateway,
    settings: { quarantineMs },
    authority: options.authority,
    makeOwner: () => `${name}.${(owners += 1)}`,
    makeToken: () => `${name}-t${(tokens += 1)}`,
    journalPlace: { host: `host-${name}`, dir: `/${name}` },
    logger: listeningLogger(said),
  });
  const { resumeAuthority } = options;
  const pause = options.pause ?? (resumeAuthority && new KeptPause(runtime, resumeAuthority));
  const loop = new SenderLoop(runtime, stop.signal, work, pause);
  let running = Promise.resolve();
  const rig: LoopRig = {
    loop,
    journal,
    gateway,
    said,
    before,
    after,
    stop,
    start: () => {
      running = loop.run();
    },
    ended: async () => clock.until(running),
  };
  world.rigs.push(rig);
  return rig;
}

/** Ends every process, and waits until it has ended. */
export async function endAll({ rigs }: LoopWorld): Promise<void> {
  for (const { stop } of rigs) stop.abort();
  for (const { ended } of rigs) await ended();
}

const CALLS = [
  'readSender',
  'acquireLease',
  'renewLease',
  'releaseLease',
  'readPayout',
  'findForgottenSends',
  'beginSend',
  'holdPayout',
  'findSignedBefore',
  'revertSend',
  'finishSend',
  'readSending',
  'markSendsUnknown',
  'object',
] as const satisfies readonly (keyof SenderLedger)[];

/** A process can ask Redis nothing, until what this returns is called. */
export function cutFromRedis({ before }: LoopRig): () => void {
  for (const call of CALLS) {
    before[call] = () => {
      throw new RedisUnavailableError('Redis unavailable');
    };
  }
  return () => {
    for (const call of CALLS) before[call] = () => undefined;
  };
}
