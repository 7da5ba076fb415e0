import type { Logger } from '../../../src/base/logger.js';
import { StepGateway, type StepGatewayOptions } from '../../world/step-gateway.js';
import { StepJournal } from '../../world/step-journal.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { JournalFile } from '../simulation/journal-file.js';
import type { WorkerLedger } from '../simulation/ledger-link.js';
import type { Pieces } from '../simulation/pieces.js';
import type { Settings } from '../simulation/plan.js';
import { SimWorker } from '../simulation/sim-worker.js';

export interface StartedWorkerOptions extends Pick<StepGatewayOptions, 'world' | 'process' | 'book' | 'drawFate'> {
  readonly lingerMs: number;
  readonly settings: Settings;
  readonly pieces: Pieces;
  /** As its process is connected to it. */
  readonly ledger: WorkerLedger;
  readonly ledgerOfRun: WorldLedger;
  readonly file: JournalFile;
  readonly dir: string;
  /** One that no other attempt has. */
  readonly nextToken: () => string;
}

/** Starts the real sender in a process whose every step is the world's. */
export function startWorker(options: StartedWorkerOptions): SimWorker {
  const { process, settings, pieces, file, dir, ledger, ledgerOfRun, nextToken } = options;
  const pacer = pieces.makePacer(process, settings);
  const context = { clock: process, pacer, settings, ledgerOfRun };
  const worker = new SimWorker({
    process,
    ledger: pieces.wrapLedger(ledger, context),
    gateway: pieces.wrapGateway(new StepGateway({ ...options, ...settings }), context),
    journal: pieces.wrapJournal(new StepJournal(process, file), context),
    journalPlace: { host: dir, dir },
    makeToken: (epoch) => pieces.makeToken(nextToken(), epoch),
    pacer,
    settings,
    guardMs: settings.guardMs,
    ringsTwice: 0,
    logger: tracingLogger(options),
  });
  void worker.run();
  return worker;
}

function tracingLogger(traced: Pick<StartedWorkerOptions, 'world' | 'process'>): Logger {
  const note = (fields: object, message: string): void => {
    traced.world.note(() => `${traced.process.name}: ${message} ${JSON.stringify(fields)}`);
  };
  return { debug: () => undefined, info: note, warn: note, error: note, child: () => tracingLogger(traced) };
}
