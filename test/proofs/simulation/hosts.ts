import type { HeldPage, HeldPayouts } from '../../../src/control/worker/hold-releaser.js';
import { type PayoutLedger, toChangeError } from '../../../src/ledger/payout-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { GatewayLink } from '../../world/gateway-link.js';
import { connectLedger, linkLedger, type LedgerCall, type WorkerLedger } from '../../world/ledger-link.js';
import { WorldWorker, type PolicyPieces } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { WorldProcess, type World } from '../../world/world.js';
import { JournalFile, JournalLink } from './journal-file.js';
import type { SimPolicy } from './policed/policy.js';
import { FIRST_BIRTH, KEYRING, PLATFORM_ID } from './signed/control.js';
import type { Simulation } from './simulation.js';
import type { JournalFolder } from './users.js';

const RATE_MOVE_EVERY_MS = 60_000;

interface Started {
  readonly process: WorldProcess;
  readonly worker: WorldWorker;
}

export interface Host extends JournalFolder {
  file: JournalFile;
  readonly running: Map<string, Started>;
}

export class SimHosts {
  readonly all: readonly Host[];
  onBegin: (process: WorldProcess) => void = () => undefined;
  readonly #run: Simulation;
  readonly #workers: WorldWorker[] = [];
  #tokens = 0;

  constructor(run: Simulation) {
    this.#run = run;
    const { plan, control } = run;
    this.all = Array.from({ length: plan.hosts }, (_, number) => ({
      dir: `host${number}`,
      file: new JournalFile(`journal${number}`, control === undefined ? undefined : FIRST_BIRTH),
      running: new Map<string, Started>(),
    }));
    for (let number = 0; number < plan.workers; number += 1) {
      const host = this.all[number % plan.hosts];
      if (host !== undefined) this.#startLater(`w${number}`, host);
    }
  }

  get #started(): Started[] {
    return this.all.flatMap(({ running }) => [...running.values()]);
  }

  get refusing(): string[] {
    const refuses = ({ worker }: Started) => worker.mismatch !== undefined && !worker.isUnadopted;
    return this.all.filter(({ running }) => [...running.values()].some(refuses)).map(({ dir }) => dir);
  }

  get isUnadopted(): boolean {
    return this.#started.some(({ worker }) => worker.isUnadopted);
  }

  findSender(): Started | undefined {
    return this.#started.find(({ process, worker }) => worker.isSender && !process.isStopped);
  }

  /** Every stopped process continues. In signed mode, operators repair the clocks of hosts: what they sign has its time. */
  repair(): void {
    for (const { process } of this.#started) process.continueNow();
    if (this.#run.control === undefined) return;
    for (const { process } of this.#started) process.wallOffsetMs = 0;
  }

  close(): void {
    for (const { process } of this.#started) process.end();
    for (const worker of this.#workers) worker.stop();
  }

  #startLater(slot: string, host: Host) {
    const { world } = this.#run;
    world.after(world.random.heavyTail(200, 20_000), () => {
      this.#start(slot, host);
    });
  }

  #start(slot: string, host: Host) {
    const { world, plan, policy, control } = this.#run;
    const { random } = world;
    const process = new WorldProcess({
      world,
      name: `${slot}#${this.#workers.length + 1}`,
      rate: 1 + plan.drift * random.pick([-1, 1, random.between(-1, 1)]),
      earlyTimers: plan.earlyTimers,
      wallOffsetMs: random.pick([0, 0, 0, -1_000, 1_000, -3_600_000, 3_600_000]),
    });
    process.wallOffsetMs = (policy ?? control)?.withinTolerance(process.wallOffsetMs) ?? process.wallOffsetMs;
    const worker = this.#makeWorker(process, host);
    this.#workers.push(worker);
    host.running.set(slot, { process, worker });
    process.onDeath = () => {
      host.running.delete(slot);
      this.#startLater(slot, host);
    };
    world.note(() => `${process.name} starts on ${host.dir}`);
    void worker.run().then(() => {
      world.note(() => `${process.name} has ended in good order`);
      process.end();
    });
  }

  #makeWorker(process: WorldProcess, { file, dir }: Host): WorldWorker {
    const { world, plan, pieces, injector, redis, book, control, attacker, policy } = this.#run;
    const { settings, faults } = plan;
    const onBegin = () => {
      if (world.fault(0.2)) this.onBegin(process);
    };
    const call = connectLedger({ process, redis, plan, injector, onBegin, attacker });
    const linked: WorkerLedger = {
      ...linkLedger(redis.ledger, call),
      queued: async () => call('queued', '', async () => Promise.resolve(redis.ledger.idsIn('queued'))),
    };
    const watchers = [control?.book, policy].filter((watcher) => watcher !== undefined);
    const doubtMs = settings.guardMs + settings.inFlightMaxMs;
    return new WorldWorker({
      ...{ process, pieces, settings, dir, ledgerOfRun: redis.ledger, ringsTwice: faults.ringsTwice },
      ledger: policy?.watchReads(process, linked) ?? linked,
      gateway: new GatewayLink({ process, book, plan, injector, watchers }),
      journal: new JournalLink({ process, file, ledger: redis.ledger, plan, injector, control }),
      nextToken: () => `t${(this.#tokens += 1)}`,
      control: (journal, ledger, context, logger) => {
        const signing = { platformId: PLATFORM_ID, keyring: KEYRING, journal, clock: process, doubtMs };
        const authority = control?.watch(pieces.makeAuthority(signing, context));
        if (policy === undefined) return { authority, policy };
        const holds = policedLedger(this.#run, process, policy, call, pieces.wrapLedger(linked, context));
        const judged = { ...signing, ...holds, senderLedger: ledger, logger, signatures: authority, current: policy };
        return { authority, policy: pieces.makePolicy({ ...judged, rateMoveEveryMs: RATE_MOVE_EVERY_MS }) };
      },
    });
  }
}

function policedLedger(
  { world, plan, redis }: Simulation,
  process: WorldProcess,
  { rates }: SimPolicy,
  call: LedgerCall,
  ledger: WorkerLedger,
): Pick<PolicyPieces, 'ledger' | 'relay' | 'source' | 'gateway' | 'publish'> {
  const holds = linkHolds(world, redis.ledger, call, ledger);
  const currencies = async (): Promise<Record<string, unknown>[]> => {
    await process.takeMs(world.random.heavyTail(20, 5_000));
    if (world.fault(plan.faults.responseLost)) throw new Error('no answer');
    return rates.tell(process);
  };
  const publish = async () => Promise.resolve();
  const relay = { tryDeliver: async () => Promise.resolve() };
  return { ledger: holds, relay, source: holds, gateway: { currencies }, publish };
}

function linkHolds(
  { situations }: World,
  ledger: WorldLedger,
  call: LedgerCall,
  { readPayout }: Pick<WorkerLedger, 'readPayout'>,
): HeldPayouts & Pick<PayoutLedger, 'change'> {
  const pageOf = (state: PayoutState, after?: string, limit = Infinity): HeldPage => {
    const found = ledger.inOrderOf(state).filter(([place]) => place > Number(after ?? -1));
    const page = found.slice(0, limit);
    const last = page.at(-1)?.[0];
    return { payouts: page.map(([, payout]) => payout), next: last === undefined ? after : String(last) };
  };
  const ask = async <Reply>(name: string, about: string, run: () => Reply | Promise<Reply>) =>
    call(name, about, async () => run());
  return {
    read: readPayout,
    held: async () => ask('held', '', () => ({ ...pageOf('held'), next: undefined })),
    queued: async (after, limit) => ask('queued', '', () => pageOf('queued', after, limit)),
    marked: async (limit) => ask('marked', '', () => [...ledger.marked(limit)]),
    unmark: async (payoutIds) => {
      if (payoutIds.length > 0) await ask('unmark', payoutIds.join(' '), async () => ledger.unmark(payoutIds));
    },
    change: async (change) => {
      const rejection = await ask('change', change.payoutId, async () => ledger.change(change));
      if (rejection !== undefined) throw toChangeError(rejection, change);
      situations?.meet('a payout is released by the policy');
    },
  };
}
