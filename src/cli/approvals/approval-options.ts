import type { Command } from 'commander';
import { z } from 'zod';
import { findSigningKey, type ActSigner } from '../../control/approvals/act-signer.js';
import { APPROVAL_LIFETIME_MS, LONGEST_APPROVAL_MS } from '../../control/approvals/approval-signer.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { durationField } from '../../control/policy/policy-fields.js';
import { InvalidInputError, NotVerifiedError } from '../../errors.js';
import { parseInput } from '../../fields.js';
import { parseActor } from '../../ledger/actor.js';
import type { CliContext } from '../context/cli-context.js';
import { nameFlags } from '../context/name-flags.js';
import { addSigningOptions, openApprover, type SigningFlags } from '../context/signing-options.js';

/** How somebody approves or rejects. */
export interface ApprovalFlags extends SigningFlags {
  readonly reason?: string;
  readonly expiresIn?: string;
  readonly offline?: true;
}

/** Who decides: a key that signs, or its name alone, where another program signs. */
export interface Approver {
  readonly name: string;
  readonly audience: string;
  readonly person: string;
  readonly signer: ActSigner | undefined;
}

/** Adds the options that `approve` and `reject` share, without `--reason`. */
export function addApprovalOptions(command: Command): Command {
  return addSigningOptions(command, 'an approver')
    .option('--expires-in <duration>', 'for how long it holds: 90m, 24h (default), at most 7d')
    .option('--offline', 'write nothing to Redis: print what is signed as JSON lines');
}

/** @returns ms. @throws InvalidInputError */
export function parseLifetime(given: string | undefined): number {
  if (given === undefined) return APPROVAL_LIFETIME_MS;
  const lifetimeMs = parseInput(z.object({ '--expires-in': durationField }), { '--expires-in': given })['--expires-in'];
  if (lifetimeMs <= LONGEST_APPROVAL_MS) return lifetimeMs;
  throw new InvalidInputError([{ field: '--expires-in', message: `must be at most 7d (got "${given}")` }]);
}

/** @returns the reason as one line. @throws InvalidInputError */
export async function parseReason(reason: string | undefined): Promise<string | undefined> {
  if (reason === undefined) return undefined;
  return (await nameFlags(() => parseActor({ by: 'approver', reason }))).reason;
}

/**
 * Finds out who decides.
 * @throws NotVerifiedError when no key is given, or the keyring has not the key as an approver's
 * @throws InvalidInputError when the key cannot be used
 */
export async function findApprover(
  context: CliContext,
  flags: ApprovalFlags,
  keyring: BoundKeyring,
): Promise<Approver> {
  const signer = await openApprover(context, flags, keyring);
  const name = signer?.name ?? requireKeyName(flags);
  const key = keyring.find(name);
  if (key === undefined) throw new NotVerifiedError(`The keyring has no key "${name}"`);
  if (signer === undefined) findSigningKey(keyring, key.public, { role: 'approver', now: Date.now() });
  return { name, audience: keyring.audience, person: key.person, signer };
}

/** Who will sign what is only printed here. */
function requireKeyName({ keyName, offline }: ApprovalFlags): string {
  if (offline !== true) {
    throw new NotVerifiedError(
      'An approval is signed by an approver: give --key FILE (a private key) or --ssh-key FILE.pub (ssh-agent, a hardware key). Nothing was changed',
    );
  }
  if (keyName !== undefined) return keyName;
  const message = 'is missing: it says who is to sign what --offline prints, where no key is given';
  throw new InvalidInputError([{ field: '--key-name', message }]);
}
