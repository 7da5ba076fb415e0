import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { loadYaml } from '../../base/late-yaml.cjs';
import { InvalidConfigError, type Problem } from '../../base/errors.js';
import { parseWallet, walletAndTagKey, walletKey } from '../../gateway/wallet.js';
import { readNamedBy, readPublicBytes } from '../keys/current-file.js';
import type { Keyring, KeyringKey } from '../keys/keyring.js';
import { findLookAlikes } from '../keys/person.js';
import { parsePolicy, type Policy } from './policy.js';
import type { IsListed, Over, PolicyRule } from './rule.js';

export interface LoadedPolicy {
  readonly policy: Policy;
  /** SHA-256 of the file and its lists, hexadecimal: hosts with the same hash decide alike. */
  readonly hash: string;
  readonly file: string;
  readonly warnings: readonly string[];
  readonly isListed: IsListed;
}

/**
 * Reads a policy and its lists.
 * @param account - that it must be for, undefined for any; without a keyring no rule can need a signer or an approval
 * @param field - the setting that names the file, for errors
 * @param now - wall clock, ms
 * @throws InvalidConfigError with every problem of the files, the policy, the account and the keyring
 */
export function readPolicyFile(
  file: string,
  account: { readonly platformId?: number | undefined; readonly keyring: Pick<Keyring, 'keys'> | undefined },
  field = 'policy',
  now = Date.now(),
): LoadedPolicy {
  return readNamedBy(field, file, () => {
    const bytes = readPublic(file);
    const policy = parsePolicy(parseYaml(bytes.toString('utf8')));
    const lists = readLists(policy, dirname(file));
    const { problems, warnings } = checkKeyring(policy, account.keyring, now);
    const all = [...checkAccount(policy, account.platformId), ...lists.problems, ...problems];
    if (all.length > 0) throw new InvalidConfigError(all);
    return { policy, hash: hashOf(bytes, lists.read), file, warnings, isListed: askLists(lists.read) };
  });
}

function checkAccount(policy: Policy, platformId: number | undefined): Problem[] {
  if (platformId === undefined || policy.platformId === platformId) return [];
  const message = `must be ${platformId}, the account for which it is read (got "${policy.platformId}")`;
  return [{ field: 'platformId', message }];
}

function readPublic(file: string): Buffer {
  return readPublicBytes(file, ', and must hold rules or addresses only');
}

function parseYaml(text: string): object {
  const document = loadYaml().parseDocument(text, { schema: 'failsafe' });
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

type AddressLists = ReadonlyMap<string, AddressList>;

function readLists(policy: Policy, folder: string): { readonly read: AddressLists; readonly problems: Problem[] } {
  const read = new Map<string, AddressList>();
  const problems = policy.rules.flatMap(({ when, cap }, index): Problem[] => {
    const { addressIn: list } = when;
    if (list === undefined) return [];
    const path = resolve(folder, list);
    try {
      const { tagged, ...parsed } = read.get(list) ?? parseAddressList(readPublic(path));
      read.set(list, { tagged, ...parsed });
      // The tag counts only if the list decides what a cap passes.
      if (tagged === undefined || (cap !== undefined && policy.uncovered === 'hold')) return [];
      throw new RangeError(`${tagged} must be without the destination tag: this rule holds whatever tag follows`);
    } catch (error) {
      const message = `names a list that cannot be used: ${path} ${(error as Error).message}`;
      return [{ field: `rules.${index}.when.addressIn`, message }];
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

/** Lengths before the parts prevent two sets of files with the same bytes. */
function hashOf(policy: Buffer, lists: AddressLists): string {
  const hash = createHash('sha256').update(`policy ${policy.length}\n`).update(policy);
  for (const [name, { bytes }] of [...lists].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    hash.update(`list ${JSON.stringify(name)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}

/** Rejects a spreadsheet's commas and quotes: such a line would never equal an address. */
const LINE = /^(?!:)[^\s,;"'\p{Cc}\u0080-\u{10ffff}]{1,256}$/u;

interface AddressList {
  readonly bytes: Buffer;
  readonly wallet: ReadonlySet<string>;
  readonly recipient: ReadonlySet<string>;
  readonly tagged: string | undefined;
}

/**
 * One address a line; `#` begins a comment.
 * @throws RangeError with the first invalid line and the number of others
 */
function parseAddressList(bytes: Buffer): AddressList {
  const lines = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim());
  const wrong = lines.flatMap((line, index) => {
    const rule = findRule(line);
    return rule === undefined ? [] : [`line ${index + 1} ${rule} (got ${JSON.stringify(line.slice(0, 80))})`];
  });
  const others = wrong.length === 1 ? '' : `, and ${wrong.length - 1} more of its lines cannot be used`;
  if (wrong[0] !== undefined) throw new RangeError(`${wrong[0]}${others}`);
  const addresses = lines.filter((line) => line !== '');
  const tagged = lines.findIndex((line) => parseWallet(line).tag !== undefined);
  return {
    bytes,
    wallet: new Set(addresses.map(walletKey)),
    recipient: new Set(addresses.map(walletAndTagKey)),
    tagged: tagged === -1 ? undefined : `line ${tagged + 1} (${JSON.stringify(lines[tagged])})`,
  };
}

/** A line that never equals an address would neither hold nor pass a payout. */
function findRule(line: string): string | undefined {
  if (line === '') return undefined;
  if (!LINE.test(line)) return 'must be one address, without spaces, commas and quotes';
  const { family, key, tag, problem } = parseWallet(line);
  if (problem !== undefined) return problem;
  if (family !== undefined || tag === undefined) return undefined;
  if (parseWallet(key).family !== undefined)
    return 'must be an address alone: no destination tag follows one of its kind';
  return parseWallet(tag).family === undefined
    ? undefined
    : 'must be an address alone, without what is before its colon';
}

/** Without its keys, a rule would hold forever or count unverifiable data. */
function checkKeyring(
  policy: Policy,
  keyring: Pick<Keyring, 'keys'> | undefined,
  now: number,
): { readonly problems: readonly Problem[]; readonly warnings: readonly string[] } {
  const problems = [...findConfusable(policy, keyring?.keys ?? [])];
  const warnings = new Set<string>();
  for (const [index, rule] of policy.rules.entries()) {
    if (keyring === undefined) {
      problems.push(...findUnsigned(rule, index));
    } else if (rule.over.kind === 'approve') {
      const found = checkGroup(rule.over, policy, keyring.keys, now);
      if (typeof found === 'string') problems.push({ field: `rules.${index}.over.approve.quorum`, message: found });
      else for (const warning of found) warnings.add(warning);
    }
  }
  return { problems, warnings: [...warnings] };
}

/** A person who looks like another of the keyring gives a group one member too few, or one too many. */
function* findConfusable({ groups }: Policy, keys: readonly KeyringKey[]): Generator<Problem> {
  const known = keys.map(({ person }) => person);
  for (const [name, persons] of groups) {
    for (const { id, other } of findLookAlikes([...known, ...persons])) {
      const message = `names a person who looks like another: write "${other}" if it is the same, else give one of them another id`;
      yield { field: `groups.${name}`, message: `${message} (got "${id}")` };
    }
  }
}

function* findUnsigned({ cap, over }: PolicyRule, index: number): Generator<Problem> {
  if (cap?.per === 'signer') {
    const message = 'is signer, and without a keyring nobody has to sign: set PAYOUT_KEYS_FILE, or count per address';
    yield { field: `rules.${index}.cap.per`, message: `${message} (got "signer")` };
  }
  if (over.kind === 'approve') {
    const message = 'needs the keyring, with which approvals are verified: set PAYOUT_KEYS_FILE, or say refuse or wait';
    yield { field: `rules.${index}.over.approve`, message: `${message} (got by: "${over.by}")` };
  }
}

function checkGroup(
  { by, quorum }: Extract<Over, { kind: 'approve' }>,
  { groups }: Policy,
  keys: readonly KeyringKey[],
  now: number,
): string | readonly string[] {
  const persons = [...(groups.get(by) ?? [])];
  const approvers = personsOf('approver', keys, now);
  const able = persons.filter((person) => approvers.has(person));
  const unable = persons.filter((person) => !approvers.has(person)).join(', ');
  if (able.length < quorum) {
    const has = able.length === 0 ? 'nobody' : `only ${able.join(', ')}`;
    return `is ${quorum}, and of the group ${by} ${has} has a valid key of an approver. Add a key of ${unable} (\`payouts keys generate NAME --role approver\`)`;
  }
  const warnings = unable === '' ? [] : [`of the group ${by} these have no valid key of an approver: ${unable}`];
  const producers = personsOf('producer', keys, now);
  for (const person of able.length === quorum ? able : []) {
    if (!producers.has(person)) continue;
    warnings.push(`what ${person} signs as a producer never has ${quorum} approvals by ${by}: nobody approves his own`);
  }
  return warnings;
}

function personsOf(role: KeyringKey['role'], keys: readonly KeyringKey[], now: number): Set<string> {
  const valid = keys.filter((key) => key.role === role && !key.revoked && now <= (key.notAfter ?? Infinity));
  return new Set(valid.map(({ person }) => person));
}
