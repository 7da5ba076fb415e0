import { AccountReplicas } from '../../../../src/ledger/known-replicas.js';
import type { ReplicasSeen } from '../../../../src/ledger/sender-ledger.js';
import type { Mistakes } from './mistakes.js';

/** What forgets how many replicas there are. Planted in runs that are replicated. */
export const replicaMistakes: Mistakes = {
  'replicas known to a process alone': {
    knowReplicas: (connection, lowest) => {
      const known = new KnownToOne(connection, lowest);
      return () => known;
    },
  },
  'replicas known under one replication id': {
    knowReplicas: (connection, lowest, run) => {
      const ofRun = histories.get(run) ?? new Map<string, ReplicasSeen>();
      histories.set(run, ofRun);
      const known = new Map<string, AccountReplicas>();
      return (replicationId) => {
        const account = known.get(replicationId) ?? new KnownOfHistory(connection, lowest, replicationId, ofRun);
        known.set(replicationId, account);
        return account;
      };
    },
  },
  'a command that asks one replica': { commandAsks: (required) => Math.min(1, required) },
  'known replicas lowered to those in sight': {
    knowReplicas: (connection, lowest) => {
      const known = new KnownInSight(connection, lowest);
      return () => known;
    },
  },
};

/** Neither ledger nor journal says more. */
class KnownToOne extends AccountReplicas {
  override async read() {
    return Promise.resolve();
  }

  override setJournal() {
    return undefined;
  }
}

const histories = new WeakMap<object, Map<string, ReplicasSeen>>();

class KnownOfHistory extends KnownToOne {
  readonly #replicationId: string;
  readonly #histories: Map<string, ReplicasSeen>;

  constructor(
    connection: ConstructorParameters<typeof AccountReplicas>[0],
    lowest: number,
    replicationId: string,
    ofRun: Map<string, ReplicasSeen>,
  ) {
    super(connection, lowest);
    this.#replicationId = replicationId;
    this.#histories = ofRun;
  }

  override see(live: ReplicasSeen) {
    const before = this.#histories.get(this.#replicationId);
    const highest = before !== undefined && before.count > live.count ? before : live;
    this.#histories.set(this.#replicationId, highest);
    super.see(highest);
  }
}

class KnownInSight extends AccountReplicas {
  #inSight = 0;

  override see(live: ReplicasSeen) {
    super.see(live);
    this.#inSight = live.count;
  }

  override get known() {
    return this.#inSight;
  }
}
