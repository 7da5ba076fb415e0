import type { Clock } from '../../base/clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { writePolicyReport } from '../../ledger/reads/policy-report.js';
import { tellPolicyLoaded } from '../../ledger/reads/workers.js';
import type { Logger } from '../../base/logger.js';
import type { AccountControl, KeyringFacts, OpenedAccount, SendControl } from '../../worker/account-control.js';
import { ReceiptSigner } from '../intents/receipt-signer.js';
import type { AccountKeyring } from '../keys/current-keyring.js';
import type { SigningKey } from '../keys/signing-key.js';
import type { CurrentPolicy } from '../policy/current-policy.js';
import { AccountPolicy, tellPolicy } from './account-policy.js';
import { HoldSource, releaseAdopted } from './hold-watch.js';
import { SignedAuthority } from './signed-authority.js';

interface MoneyControlOptions {
  readonly platformId: number;
  readonly audience: string;
  readonly keyring: AccountKeyring | undefined;
  readonly policy: CurrentPolicy | undefined;
  readonly receiptKey: SigningKey | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class MoneyControl implements AccountControl {
  readonly receipts: ReceiptSigner | undefined;
  readonly #options: MoneyControlOptions;

  constructor(options: MoneyControlOptions) {
    this.#options = options;
    const { receiptKey: key } = options;
    this.receipts = key && new ReceiptSigner({ ...options, key });
  }

  get keyring(): KeyringFacts | undefined {
    return this.#options.keyring?.current;
  }

  get policy(): CurrentPolicy | undefined {
    return this.#options.policy;
  }

  get heldLines(): AccountControl['heldLines'] {
    return { unsigned: this.keyring !== undefined, spends: this.policy !== undefined };
  }

  async report(connection: LedgerConnection, name: string, end: AbortSignal): Promise<void> {
    const { policy, clock, logger } = this.#options;
    const tell = async (hash: string, about: string): Promise<void> => tellPolicyLoaded(connection, hash, about);
    if (policy !== undefined) await tellPolicy({ policy, name, tell, clock, logger }, end);
  }

  open(account: OpenedAccount): SendControl {
    const { keyring, policy: current } = this.#options;
    const { ledger } = account;
    const source = new HoldSource(ledger.connection);
    const signatures = keyring && new SignedAuthority({ ...this.#options, ...account, keyring });
    const policy =
      current &&
      new AccountPolicy({
        ...{ ...this.#options, ...account, current, signatures, source },
        writeReport: async (report) => writePolicyReport(ledger.connection, report),
      });
    return {
      authority: policy?.authority ?? signatures,
      resumeAuthority: signatures,
      standBy: async (end) => policy?.standBy(end),
      takeOver: async (end) => policy?.takeOver(end),
      keep: async (end) => {
        await Promise.all([policy?.keep(end), this.#releaseAdopted(account, source, end)]);
      },
    };
  }

  /**
   * Releases payouts that a worker, such as one of the version before, held singly because its journal was not adopted.
   */
  async #releaseAdopted(
    { journal, ledger, relay }: OpenedAccount,
    source: HoldSource,
    end: AbortSignal,
  ): Promise<void> {
    const { keyring, logger } = this.#options;
    if (keyring === undefined || journal.bornAt > 0) return;
    try {
      await releaseAdopted({ ledger, relay, source, logger }, () => end.aborted);
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'could not release what waited for the adoption of the journal');
    }
  }
}
