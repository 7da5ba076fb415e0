import { RedisUnavailableError } from '../../../../src/base/errors.js';
import type { AccountReplicas } from '../../../../src/ledger/known-replicas.js';
import type { LedgerConnection } from '../../../../src/ledger/ledger-connection.js';
import type { ReplicasSeen } from '../../../../src/ledger/sender-ledger.js';
import type { LedgerCall, LinkedRedis, WorkerLedger } from '../../../world/links.js';
import type { Pieces } from '../../../world/worker.js';
import type { WorldProcess } from '../../../world/world.js';
import type { Replication } from './replication.js';

const CHECK_AGAIN_MS = 60_000;

type Options = Readonly<{
  process: WorldProcess;
  host: number;
  replication: Replication;
  link: LinkedRedis;
  call: LedgerCall;
  pieces: Pieces;
  journal?: Readonly<{ knownReplicas: number }>;
  /** How many are asked, of those that have to be. */
  asks?: (required: number) => number;
}>;

/** As the process's own: it takes the account's number from ledger, journal and server, and waits for that many. */
export class SimConfirmer {
  acknowledged: ReplicasSeen = { count: 0, names: [] };
  readonly #options: Options;
  readonly #accountOf: (replicationId: string) => AccountReplicas;
  #seen: Readonly<{ generation: number; at: number }> | undefined;

  constructor(options: Options) {
    this.#options = options;
    const { replication, host, pieces, journal } = options;
    const { connection } = replication.main.ledger;
    const routed: LedgerConnection = {
      ...connection,
      run: async (...args) => replication.sideOf(host).ledger.connection.run(...args),
    };
    const accountOf = pieces.knowReplicas(routed, replication.isListed ? 1 : 0, replication);
    this.#accountOf = (replicationId) => {
      const account = accountOf(replicationId);
      if (journal !== undefined) account.setJournal(() => journal.knownReplicas);
      return account;
    };
  }

  /** Before the write: a reply of another connection says nothing of it. */
  prepare(): () => Promise<void> {
    const { generation } = this.#options.link;
    return async () => this.#confirm(generation);
  }

  /** @throws RedisUnavailableError */
  async #confirm(generation: number): Promise<void> {
    const { replication, host, link, call, process, asks = (required: number) => required } = this.#options;
    try {
      const account = await call('replicas', '', async () => this.#readAccount());
      const asked = asks(account.required);
      const count = asked === 0 ? 0 : await call('wait', String(asked), async () => replication.wait(host, asked));
      if (count === undefined || link.generation !== generation)
        throw new RedisUnavailableError('the connection changed meanwhile');
      const needed = asks(account.required);
      if (count < needed) throw new RedisUnavailableError(`only ${count} of ${needed} replicas acknowledged it`);
      this.acknowledged = { count, names: [] };
    } catch (error) {
      this.#seen = undefined;
      process.world.situations?.meet('a write is not confirmed');
      throw error;
    }
  }

  async #readAccount(): Promise<AccountReplicas> {
    const { replication, host, link, process } = this.#options;
    const { generation } = link;
    const side = replication.sideOf(host);
    const account = this.#accountOf(side.replicationId);
    await account.read(side.ledger.connection.redis);
    if (this.#seen?.generation !== generation || process.now() - this.#seen.at >= CHECK_AGAIN_MS) {
      account.see(replication.see(side));
      this.#seen = { generation, at: process.now() };
    }
    await account.save();
    return account;
  }
}

/** The calls of a sender that count once replicas have them. */
export function confirmCalls(ledger: WorkerLedger, confirmer: SimConfirmer): WorkerLedger {
  return {
    ...ledger,
    beginSend: async (begin) => {
      const confirm = confirmer.prepare();
      const result = await ledger.beginSend(begin);
      if (result.kind === 'begun') await confirm();
      return result;
    },
    readUnkept: async (limit) => {
      const confirm = confirmer.prepare();
      const unkept = await ledger.readUnkept(limit);
      await confirm();
      return unkept;
    },
  };
}
