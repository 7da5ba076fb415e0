import type { Queue } from 'bullmq';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { findForeignSettings } from '../../queues/queue-settings.js';
import { ok, problem, type CheckResult } from './check-result.js';

/** Whether settings in Redis stop a queue, or override the limits of its worker. */
export async function checkQueue(queue: Queue, connection: LedgerConnection): Promise<CheckResult> {
  const name = `${queue.name} queue`;
  const found = await findForeignSettings(connection, queue);
  if (found.length === 0) return ok(name, 'no settings that override the worker');
  const commands = found.map(({ command }) => `redis-cli ${command}`).join(' && ');
  return problem(name, found.map(({ detail }) => detail).join('; '), `This was set by hand; undo it: ${commands}`);
}
