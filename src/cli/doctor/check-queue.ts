import type { Queue } from 'bullmq';
import { pipelined, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { ok, problem, type CheckResult } from './check-result.js';

/** The limiters of both queues count within a second; a key with a longer TTL was set by hand. */
const LIMITER_LIVES_MS = 2_000;

/** A setting in Redis that no worker made, and the command that removes it. */
interface Finding {
  readonly detail: string;
  readonly command: string;
}

/** Whether settings in Redis stop a queue, or override the limits of its worker. */
export async function checkQueue(queue: Queue, connection: LedgerConnection): Promise<CheckResult> {
  const name = `${queue.name} queue`;
  const findings = [
    ...(await findSettings(connection, queue.toKey('meta'))),
    ...(await findLimiter(connection, queue.toKey('limiter'))),
  ];
  if (findings.length === 0) return ok(name, 'no settings that override the worker');
  const commands = findings.map(({ command }) => `redis-cli ${command}`).join(' && ');
  return problem(name, findings.map(({ detail }) => detail).join('; '), `This was set by hand; undo it: ${commands}`);
}

async function findSettings(connection: LedgerConnection, key: string): Promise<Finding[]> {
  const [meta] = (await pipelined(connection, (pipeline) => pipeline.hgetall(key))) as [Record<string, string>];
  const { paused, concurrency, max, duration } = meta;
  const findings: Finding[] = [];
  const remove = (...fields: string[]): string => `HDEL '${key}' ${fields.join(' ')}`;
  if (paused !== undefined) {
    findings.push({ detail: 'paused in BullMQ, so no job runs', command: remove('paused') });
  }
  if (concurrency !== undefined) {
    findings.push({ detail: `global concurrency of ${concurrency}`, command: remove('concurrency') });
  }
  if (max !== undefined || duration !== undefined) {
    findings.push({
      detail: `global rate limit (${max ?? '?'} in ${duration ?? '?'} ms), which overrides that of the worker`,
      command: remove('max', 'duration'),
    });
  }
  return findings;
}

async function findLimiter(connection: LedgerConnection, key: string): Promise<Finding[]> {
  const [livesMs] = (await pipelined(connection, (pipeline) => pipeline.pttl(key))) as [number];
  const command = `DEL '${key}'`;
  if (livesMs === -1) return [{ detail: 'the limiter key never expires, so the limiter does not work', command }];
  if (livesMs > LIMITER_LIVES_MS) {
    return [{ detail: `rate limited by hand for another ${Math.ceil(livesMs / 1_000)} s`, command }];
  }
  return [];
}
