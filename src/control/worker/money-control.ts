import { writePolicyReport } from '../../ledger/reads/policy-report.js';
import { publishPolicyLoaded } from '../../ledger/reads/workers.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { AccountControl, OpenedAccount, SendControl } from '../../worker/account-control.js';
import type { ControlAccount, ControlRuntime } from '../control-runtime.js';
import { ReceiptSigner } from '../intents/receipt.js';
import type { AccountKeyring } from '../keys/current-keyring.js';
import type { Signer } from '../keys/signer.js';
import type { CurrentPolicy } from '../policy/current-policy.js';
import { AccountPolicy, publishLoaded } from './account-policy.js';
import { HoldSource, releaseAdopted } from './hold-releaser.js';
import { keepHeldRejections, RejectionAuthority } from './rejection-authority.js';
import { SignedAuthority } from './signed-authority.js';

export class MoneyControl implements AccountControl {
  readonly receipts: ReceiptSigner | undefined;
  readonly policy: CurrentPolicy | undefined;
  readonly #account: ControlAccount;

  constructor(account: ControlAccount, policy: CurrentPolicy | undefined, signer: Signer | undefined) {
    this.#account = { ...account, current: policy };
    this.policy = policy;
    this.receipts = signer && new ReceiptSigner({ ...account, keyring: account.keyring, signer });
  }

  get keyring(): AccountKeyring | undefined {
    return this.#account.keyring;
  }

  get heldLines(): AccountControl['heldLines'] {
    return { unsigned: this.keyring !== undefined, spends: this.policy !== undefined };
  }

  async report(connection: LedgerConnection, name: string, end: AbortSignal): Promise<void> {
    const publish = async (hash: string, about: string): Promise<void> => publishPolicyLoaded(connection, hash, about);
    if (this.policy !== undefined) await publishLoaded(this.policy, name, publish, this.#account, end);
  }

  open(opened: OpenedAccount): SendControl {
    const runtime: ControlRuntime = { ...this.#account, ...opened };
    const source = new HoldSource(opened.connection);
    const { keyring, current } = runtime;
    const signatures = keyring && new SignedAuthority({ ...runtime, keyring });
    const publish: AccountPolicy['publish'] = async (report) => writePolicyReport(opened.connection, report);
    const rejections = new RejectionAuthority(runtime, signatures);
    const policy = current && new AccountPolicy({ ...runtime, current }, rejections, source, publish);
    return {
      authority: policy?.authority ?? rejections,
      resumeAuthority: signatures,
      standBy: async (end) => policy?.standBy(end),
      takeOver: async (end) => policy?.takeOver(end),
      keep: async (end) => {
        // A policy's checks do that too.
        const keepRejections = policy === undefined && keyring && keepHeldRejections(runtime, source, rejections, end);
        await Promise.all([policy?.keep(end), keyring && this.#releaseAdopted(runtime, source, end), keepRejections]);
      },
    };
  }

  /** Releases what a worker, such as one of the version before, held singly because its journal was not adopted. */
  async #releaseAdopted(runtime: ControlRuntime, source: HoldSource, end: AbortSignal): Promise<void> {
    const { journal, logger } = runtime;
    if (journal.bornAt > 0) return;
    try {
      await releaseAdopted(runtime, source, () => end.aborted);
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'could not release what waited for the adoption of the journal');
    }
  }
}
