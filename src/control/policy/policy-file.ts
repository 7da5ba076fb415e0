import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { InvalidConfigError, type Problem } from '../../errors.js';
import { walletAndTagKey, walletKey } from '../../gateway/wallet.js';
import { readTrustedBytes } from '../../trusted-file.js';
import type { Keyring } from '../keys/keyring.js';
import { parseAddressList, type AddressList } from './address-list.js';
import { checkKeyring } from './check-keyring.js';
import type { IsListed } from './decide.js';
import { parsePolicy, type Policy } from './policy.js';

export interface LoadedPolicy {
  readonly policy: Policy;
  /** SHA-256 over the file and its lists, hexadecimal: two hosts with the same hash decide alike. */
  readonly hash: string;
  readonly file: string;
  /** What is valid, but probably not intended: sentences for operators. */
  readonly warnings: readonly string[];
  readonly isListed: IsListed;
}

export interface PolicyFileOptions {
  /** The required account; undefined for any. */
  readonly platformId?: number | undefined;
  /** Undefined if signing is not required: then no rule can need a signer or an approval. */
  readonly keyring: Pick<Keyring, 'keys'> | undefined;
  readonly field?: string;
  /** Wall clock, ms. @defaultValue the clock of this machine */
  readonly now?: number;
}

/**
 * Reads a policy and its lists. Every problem is reported at once.
 * @throws InvalidConfigError if a file is missing or not trusted, or the policy is invalid, of another account, or
 * needs keys that the keyring lacks
 */
export function readPolicyFile(file: string, options: PolicyFileOptions): LoadedPolicy {
  const { field = 'policy', keyring, now = Date.now() } = options;
  try {
    const bytes = readPublic(file);
    const policy = parsePolicy(parseYaml(bytes.toString('utf8')));
    const lists = readLists(policy, dirname(file));
    const { problems, warnings } = checkKeyring(policy, keyring, now);
    const all = [...checkAccount(policy, options.platformId), ...lists.problems, ...problems];
    if (all.length > 0) throw new InvalidConfigError(all);
    return { policy, hash: hashOf(bytes, lists.read), file, warnings, isListed: askLists(lists.read) };
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) {
      throw new InvalidConfigError([{ field, message: `${file} ${(error as Error).message}` }]);
    }
    throw new InvalidConfigError(
      error.problems.map((problem) => ({ field, message: `${file}: ${problem.field} ${problem.message}` })),
    );
  }
}

function checkAccount(policy: Policy, platformId: number | undefined): Problem[] {
  if (platformId === undefined || policy.platformId === platformId) return [];
  const message = `must be ${platformId}, the account for which it is read (got "${policy.platformId}")`;
  return [{ field: 'platformId', message }];
}

/** Rejects a file with a secret before parsing, because errors show values. */
function readPublic(file: string): Buffer {
  const bytes = readTrustedBytes(file);
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(bytes.toString('latin1'))) return bytes;
  throw new Error('holds a private key, and must hold rules or addresses only');
}

function parseYaml(text: string): object {
  const document = parseDocument(text, { schema: 'failsafe' });
  const problems = [...document.errors, ...document.warnings].map(({ message }): Problem => ({
    field: 'it',
    message: `is no YAML: ${message.split('\n')[0] ?? ''}`,
  }));
  if (problems.length > 0) throw new InvalidConfigError(problems);
  const content: unknown = document.toJS();
  if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content;
  // It may be a different file with a secret, so show nothing of it.
  throw new Error('is no policy: it must have "version: 1", "platformId", "default" and a list "rules"');
}

type AddressLists = ReadonlyMap<string, AddressList & { readonly bytes: Buffer }>;

function readLists(policy: Policy, folder: string): { readonly read: AddressLists; readonly problems: Problem[] } {
  const read = new Map<string, AddressList & { readonly bytes: Buffer }>();
  const problems = policy.rules.flatMap(({ when, cap }, index): Problem[] => {
    const { addressIn: list } = when;
    if (list === undefined) return [];
    const path = resolve(folder, list);
    try {
      const bytes = read.get(list)?.bytes ?? readPublic(path);
      const parsed = read.get(list) ?? { bytes, ...parseAddressList(bytes.toString('utf8')) };
      read.set(list, parsed);
      // The tag counts only if the list decides what a cap passes.
      if (parsed.tagged === undefined || (cap !== undefined && policy.uncovered === 'hold')) return [];
      throw new RangeError(
        `${parsed.tagged} must be without the destination tag: this rule holds whatever tag follows`,
      );
    } catch (error) {
      const said = (error as Error).message;
      return [{ field: `rules.${index}.when.addressIn`, message: `names a list that cannot be used: ${path} ${said}` }];
    }
  });
  return { read, problems };
}

function askLists(lists: AddressLists): LoadedPolicy['isListed'] {
  return (name, addressTo, as) => {
    const list = lists.get(name);
    // "No" would pass what a list forbids, "yes" what only a list allows.
    if (list === undefined) throw new Error(`The policy has no list "${name}"`);
    return list[as].has(as === 'wallet' ? walletKey(addressTo) : walletAndTagKey(addressTo));
  };
}

/** The length before each part prevents two sets of files with the same bytes. */
function hashOf(policy: Buffer, lists: AddressLists): string {
  const hash = createHash('sha256').update(`policy ${policy.length}\n`).update(policy);
  for (const [name, { bytes }] of [...lists].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    hash.update(`list ${JSON.stringify(name)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}
