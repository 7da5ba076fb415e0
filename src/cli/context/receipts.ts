import { readConfig, type Environment } from '../../config.js';
import type { ReceiptVerdict } from '../../control/intents/verify-receipt.js';
import { ReceiptVerifier } from '../../control/intents/receipt-verifier.js';
import { findKeyring } from './keyring.js';

/**
 * Verifies the receipts of the environment's account with its keyring; undefined where there is no keyring.
 * @throws InvalidConfigError when the keyring cannot be used
 */
export function openReceiptVerifier(environment: Environment): ReceiptVerifier | undefined {
  const keyring = findKeyring(environment);
  if (keyring === undefined) return undefined;
  return new ReceiptVerifier(readConfig(['GATEWAY_PLATFORM_ID'], environment).GATEWAY_PLATFORM_ID, keyring);
}

/** What was found out of a receipt, in words; undefined where there is nothing to say. */
export function describeReceipt(verdict: ReceiptVerdict | undefined): string | undefined {
  if (verdict === undefined) return undefined;
  return verdict.kind === 'verified' ? `verified by worker ${verdict.signer.name}` : `NOT VERIFIED: ${verdict.message}`;
}
