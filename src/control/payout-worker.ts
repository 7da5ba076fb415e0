import { objectWith, type OptionRules } from '../base/setting.js';
import { CONTROL_SETTINGS } from '../base/settings.js';
import type { OpenControl } from '../worker/account-control.js';
import { CoreWorker, type CoreWorkerOptions, requireWorkerOptions, WORKER_RULES } from '../worker/core-worker.js';
import { CurrentKeyring } from './keys/current-keyring.js';
import { checkReceiptSigner } from './keys/check-receipt-signer.js';
import { limitSigner, type Signer } from './keys/signer.js';
import { openPolicies } from './policy/current-policy.js';
import { MoneyControl } from './worker/money-control.js';

/** The accounts of a worker, and the options that they share; docs/configuration.md has the rules and defaults. */
export interface PayoutWorkerOptions extends CoreWorkerOptions {
  /**
   * The keyring's file: with it, the worker sends only what a producer of the keyring signed (docs/control.md).
   * @defaultValue the ledger alone decides what is sent
   */
  readonly keysFile?: string | undefined;
  /**
   * Signs the final states `completed` and `failed`, so that a producer with the keyring need not believe Redis
   * (docs/control.md). The keyring gives the key the role `worker`. See `openSigner`. If it gives no signature, the
   * payment ends without a receipt.
   * @defaultValue final states are not signed
   */
  readonly receiptSigner?: Signer | undefined;
}

const RULES = {
  ...WORKER_RULES,
  keysFile: CONTROL_SETTINGS.keysFile,
  receiptSigner: objectWith('sign'),
} as const satisfies OptionRules<PayoutWorkerOptions>;

/** Sends and follows the payouts of one or several independent accounts in one process. */
export class PayoutWorker extends CoreWorker {
  /**
   * Checks Redis, and waits while it is unavailable.
   * @param signal - ends the wait
   * @throws InvalidConfigError if a setting, a key or a policy is invalid, or Redis may forget what was sent
   * @throws StoppedError if the signal ended the wait
   */
  static override async create(options: PayoutWorkerOptions, signal: AbortSignal): Promise<PayoutWorker> {
    requireWorkerOptions(RULES, options);
    return super.create(options, signal, controlOf(options));
  }
}

/**
 * Starts a worker inside an application.
 * @example
 * const worker = await createPayoutWorker({ accounts: [{ platformId, baseUrl, secretKey }], journalDir: './data/journal' });
 * process.once('SIGTERM', () => void worker.stop());
 * @param signal - ends the wait for a Redis that is unavailable at the start
 * @throws InvalidConfigError if a setting is invalid, or Redis may forget what was sent
 * @throws StoppedError if the signal ended the wait
 */
export async function createPayoutWorker(
  options: PayoutWorkerOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<PayoutWorker> {
  const worker = await PayoutWorker.create(options, signal);
  worker.start();
  return worker;
}

const UNSIGNED = 'PAYOUT_KEYS_FILE is not set: anyone who can write to Redis can pay himself; see docs/control.md';

function controlOf({ keysFile, receiptSigner: given, accounts }: PayoutWorkerOptions): OpenControl {
  const receiptSigner = given && limitSigner(given);
  return async ({ logger, clock }) => {
    if (keysFile === undefined) logger.warn({}, UNSIGNED);
    const keyring = keysFile === undefined ? undefined : new CurrentKeyring(keysFile, logger);
    if (receiptSigner !== undefined) await checkReceiptSigner(receiptSigner, keyring, clock, logger);
    const policies = openPolicies(accounts, keyring, clock, logger);
    return {
      of: (account) => {
        const bound = keyring?.for(account.audience);
        return new MoneyControl({ ...account, keyring: bound, clock }, policies.get(account.platformId), receiptSigner);
      },
      reloadKeys: () => keyring?.reload(),
      reloadPolicies: () => {
        for (const policy of policies.values()) policy.reload();
      },
    };
  };
}
