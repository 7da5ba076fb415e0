import type { Redis } from 'ioredis';
import { readInfo } from './redis-durability.js';

/**
 * A script that may write and writes nothing. Redis refuses it whenever it would refuse a write: on a replica, when
 * full, when its disk fails, with too few replicas.
 */
const PROBE = '#!lua\nreturn 1';

/** Why a server takes no writes, and the operator's remedy. */
export interface WriteRefusal {
  readonly reason: string;
  readonly action: string;
  /** The account's replicas that are missing, if that is why. */
  readonly missing?: readonly string[];
}

const READ_ONLY: WriteRefusal = {
  reason: 'it is a read-only replica',
  action: 'Point REDIS_URL at the master, or make this server the master again.',
};
const FULL: WriteRefusal = {
  reason: 'it is full (maxmemory)',
  action: 'Raise maxmemory, or remove what else is stored in it.',
};

/** `min-replicas-to-write`. */
const NOREPLICAS: WriteRefusal = {
  reason: 'too few of its replicas are connected (min-replicas-to-write)',
  action: 'Restore the replicas, or the network to them.',
};

const REFUSALS: Readonly<Record<string, WriteRefusal>> = {
  READONLY: READ_ONLY,
  OOM: FULL,
  MISCONF: { reason: 'it cannot write to its disk', action: 'Free its disk, and read its log.' },
  NOREPLICAS,
};

/** @returns undefined if the server takes writes; nothing is written @throws the error of ioredis */
export async function findWriteRefusal(server: Redis): Promise<WriteRefusal | undefined> {
  try {
    await server.eval(PROBE, 0);
    return undefined;
  } catch (error) {
    const { name, message } = error as Error;
    if (name !== 'ReplyError') throw error;
    const [code = ''] = message.split(' ');
    if (code in REFUSALS) return REFUSALS[code];
    // Redis 6.2 knows no script flags.
    return findRefusalInInfo(server);
  }
}

export function isForWantOfReplicas({ reason }: WriteRefusal): boolean {
  return reason === NOREPLICAS.reason;
}

async function findRefusalInInfo(server: Redis): Promise<WriteRefusal | undefined> {
  const info = await readInfo(server);
  if (info?.['role'] === 'slave') return READ_ONLY;
  const limit = Number(info?.['maxmemory'] ?? 0);
  return limit > 0 && Number(info?.['used_memory']) > limit ? FULL : undefined;
}
