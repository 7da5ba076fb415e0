import { type HeldPayouts, HoldSource } from '../../../src/control/worker/hold-releaser.js';
import { toCurrencyList } from '../../../src/gateway/parse-currencies.js';
import { type PayoutLedger, toChangeError } from '../../../src/ledger/payout-ledger.js';
import { OrderLookUps } from '../../../src/ledger/order-look-ups.js';
import {
  connectLedger,
  type LedgerCall,
  linkGateway,
  linkLedger,
  linkLookUpLedger,
  type WorkerLedger,
} from '../../world/links.js';
import { linkLookUps } from '../../world/link-look-ups.js';
import { makeWorker, type WorldWorker } from '../../world/worker.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import { type World, WorldProcess } from '../../world/world.js';
import { JournalFile, JournalLink } from './journal-file.js';
import { confirmCalls, SimConfirmer } from './replicated/confirmer.js';
import { FIRST_BIRTH, KEYRING, PLATFORM_ID } from './signed/control.js';
import type { Simulation } from './simulation.js';
import type { JournalFolder } from './users.js';

const RATE_MOVE_EVERY_MS = 60_000;

type Started = Readonly<{ process: WorldProcess; worker: WorldWorker }>;

export interface Host extends JournalFolder {
  file: JournalFile;
  readonly running: Map<string, Started>;
}

export type SimHosts = ReturnType<typeof openHosts>;

export function openHosts(run: Simulation) {
  const { world, plan, pieces, injector, redis, book, control, attacker, policy, replication } = run;
  const { random } = world;
  const { settings, faults } = plan;
  const { ledger } = redis;
  const workers: WorldWorker[] = [];
  let tokens = 0;
  const all = Array.from({ length: plan.hosts }, (_, number): Host => ({
    dir: `host${number}`,
    file: new JournalFile(`journal${number}`, control === undefined ? undefined : FIRST_BIRTH),
    running: new Map(),
  }));
  if (policy !== undefined) {
    policy.journaledRejections = (payoutId) =>
      all.flatMap(({ file }) => file.lines.filter((line) => 'rejected' in line && line.rejected.payoutId === payoutId))
        .length;
  }

  const findStarted = () => all.flatMap(({ running }) => [...running.values()]);

  const makeHostWorker = (process: WorldProcess, host: Host) => {
    const { file, dir } = host;
    const number = all.indexOf(host);
    const link = replication?.linkOf(number, redis) ?? redis;
    const reached = replication?.ledgerOf(number) ?? ledger;
    const onBegin = () => {
      if (world.fault(0.2)) hosts.onBegin(process);
    };
    const call = connectLedger({ process, redis: link, plan, injector, onBegin, attacker });
    const plain: WorkerLedger = {
      ...linkLedger(reached, call),
      queued: async () => call('queued', '', async () => Promise.resolve(reached.idsIn('queued'))),
    };
    const journal = new JournalLink({ process, file, ledger, plan, injector, control });
    const confirmer =
      replication && new SimConfirmer({ ...{ process, host: number, replication, link, call, pieces, journal } });
    const linked = confirmer === undefined ? plain : confirmCalls(plain, confirmer);
    const watchers = [control?.book, policy?.judge].filter((watcher) => watcher !== undefined);
    return makeWorker({
      ...{ process, pieces, settings, dir, ledgerOfRun: ledger, ringsTwice: faults.ringsTwice },
      ledger: policy?.watchReads(process, linked) ?? linked,
      gateway: linkGateway({ process, book, plan, injector, watchers, closesOnly: pieces.closesOnly }),
      lookUps:
        book.dialect.api === 'v2'
          ? {
              gateway: linkLookUps({ process, book, plan, injector }),
              ledger: linkLookUpLedger(new OrderLookUps(reached.connection), call),
            }
          : undefined,
      journal,
      acknowledgedReplicas: confirmer && (() => confirmer.acknowledged),
      nextToken: () => `t${(tokens += 1)}`,
      control: (journal, senderLedger, context, logger) => {
        const signing = { platformId: PLATFORM_ID, keyring: KEYRING, journal, clock: process };
        const signatures = control?.watch(pieces.makeAuthority(signing, context));
        if (policy === undefined) return { authority: signatures, policy };
        const holds = linkHolds(world, ledger, call, pieces.wrapLedger(linked, context));
        const gateway = {
          readCurrencies: async () => {
            await process.takeMs(random.heavyTail(20, 5_000));
            if (world.fault(faults.responseLost)) throw new Error('no answer');
            return toCurrencyList(policy.rates.tell(process));
          },
        };
        const opened = pieces.makePolicy({
          ...{ ...signing, senderLedger, logger, signatures, gateway, ledger: holds, source: holds, current: policy },
          rateMoveEveryMs: RATE_MOVE_EVERY_MS,
          publish: async () => Promise.resolve(),
          relay: { tryDeliver: async () => Promise.resolve() },
        });
        return { authority: signatures, policy: opened };
      },
    });
  };

  const start = (slot: string, host: Host) => {
    const process = new WorldProcess({
      ...{ world, name: `${slot}#${workers.length + 1}`, earlyTimers: plan.earlyTimers },
      rate: 1 + plan.drift * random.pick([-1, 1, random.between(-1, 1)]),
      wallOffsetMs: run.tolerated(random.pick([0, 0, 0, -1_000, 1_000, -3_600_000, 3_600_000])),
    });
    const worker = makeHostWorker(process, host);
    workers.push(worker);
    host.running.set(slot, { process, worker });
    process.onDeath = () => {
      host.running.delete(slot);
      startLater(slot, host);
    };
    world.note(() => `${process.name} starts on ${host.dir}`);
    void worker.run().then(() => {
      world.note(() => `${process.name} has ended in good order`);
      process.end();
    });
  };

  const startLater = (slot: string, host: Host) => {
    world.after(random.heavyTail(200, 20_000), () => {
      start(slot, host);
    });
  };

  const hosts = {
    all,
    onBegin: (() => undefined) as (process: WorldProcess) => void,

    get refusing() {
      const refuses = ({ worker }: Started) => worker.mismatch !== undefined && !worker.isUnadopted;
      return all.filter(({ running }) => [...running.values()].some(refuses)).map(({ dir }) => dir);
    },

    get isUnadopted() {
      return findStarted().some(({ worker }) => worker.isUnadopted);
    },

    findSender: () => findStarted().find(({ process, worker }) => worker.isSender && !process.isStopped),

    /** Every stopped process continues. With signatures, operators repair the clocks of hosts: what they sign has its time. */
    repair() {
      for (const { process } of findStarted()) {
        process.continueNow();
        if (control !== undefined) process.wallOffsetMs = 0;
      }
    },

    close() {
      for (const { process } of findStarted()) process.end();
      for (const worker of workers) worker.stop();
    },
  };
  for (let number = 0; number < plan.workers; number += 1) {
    const host = all[number % plan.hosts];
    if (host !== undefined) startLater(`w${number}`, host);
  }
  return hosts;
}

function linkHolds(
  { situations }: World,
  ledger: WorldLedger,
  call: LedgerCall,
  { readPayout }: Pick<WorkerLedger, 'readPayout'>,
): HeldPayouts & Pick<PayoutLedger, 'change'> {
  const source = new HoldSource(ledger.connection);
  return {
    read: readPayout,
    held: async (...page) => call('held', '', async () => source.held(...page)),
    queued: async (...page) => call('queued', '', async () => source.queued(...page)),
    marked: async (limit) => call('marked', '', async () => source.marked(limit)),
    unmark: async (payoutIds) => {
      if (payoutIds.length > 0) await call('unmark', payoutIds.join(' '), async () => source.unmark(payoutIds));
    },
    change: async (change) => {
      const rejection = await call('change', change.payoutId, async () => ledger.change(change));
      if (rejection !== undefined) throw toChangeError(rejection, change, 0);
      situations?.meet('a payout is released by the policy');
    },
  };
}
