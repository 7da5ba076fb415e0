import { KnownReplicas } from './known-replicas.js';
import type { LedgerConnection } from './ledger-connection.js';
import { checkServer, replicasSeen } from './redis-durability.js';
import { findServer } from './redis-servers.js';
import { findWriteRefusal, isForWantOfReplicas, type WriteRefusal } from './write-refusal.js';

/**
 * Why the server of an account takes no writes, with the replicas that are missing; an unknown server also fails the read
 * of the ledger. Writes nothing.
 * @returns undefined if it takes them
 * @throws the error of ioredis
 */
export async function findRefusalOf(connection: LedgerConnection): Promise<WriteRefusal | undefined> {
  const { redis, keys } = connection;
  const server = findServer(redis, keys.ledger);
  const refusal = server && (await findWriteRefusal(server));
  if (server === undefined || refusal === undefined || !isForWantOfReplicas(refusal)) return refusal;
  const account = new KnownReplicas(redis).of(connection);
  const report = await checkServer(server, true);
  await account.read(redis);
  account.see(replicasSeen(report));
  return { ...refusal, missing: account.missingFrom(report) };
}
