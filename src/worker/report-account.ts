import { hostname } from 'node:os';
import { tellPolicyLoaded } from '../ledger/tell-of-control.js';
import { tellPolicy, type TellPolicyOptions } from '../control/worker/tell-policy.js';
import { reportWorker, type WorkerReportsOptions } from './report-worker.js';

export interface AccountReportsOptions extends Omit<WorkerReportsOptions, 'name'> {
  /** What may leave the account; undefined where everything may. */
  readonly policy: TellPolicyOptions['policy'] | undefined;
}

/** Tells operators what this process does for the account, and by which policy, until the signal is aborted. */
export async function reportAccount(options: AccountReportsOptions, end: AbortSignal): Promise<void> {
  const { policy, connection } = options;
  const name = `${hostname()}:${process.pid}`;
  const tell = async (hash: string, about: string): Promise<void> => tellPolicyLoaded(connection, hash, about);
  await Promise.all([
    reportWorker({ ...options, name }, end),
    policy && tellPolicy({ ...options, policy, name, tell }, end),
  ]);
}
