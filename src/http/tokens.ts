import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { parse, YAMLParseError } from 'yaml';
import { z } from 'zod';
import { InvalidConfigError, type Problem } from '../base/errors.js';
import { keyNameField, platformIdField, toProblems, wholeNumberField } from '../base/fields.js';
import { readSecretFile } from '../base/trusted-file.js';
import { CurrentFile, readNamedBy } from '../control/keys/current-file.js';

/** Who may do what through the door: a file of token hashes. A token is random, so SHA-256 suffices. */

export const RIGHTS = ['enqueue', 'read', 'cancel'] as const;
export type Right = (typeof RIGHTS)[number];

const MAX_TOKENS = 1_000;

const entrySchema = z
  .strictObject({
    /** The client. Cancellations have it as `by`. */
    name: keyNameField,
    account: platformIdField,
    rights: z.array(z.enum(RIGHTS, `must be of ${RIGHTS.join(', ')}`), 'must be a list').min(1, 'must not be empty'),
    sha256: z.string('must be a string').regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits, not the token itself'),
    perMinute: wholeNumberField(1).optional(),
  })
  .transform((entry) => ({ ...entry, hash: Buffer.from(entry.sha256, 'hex') }));

const fileSchema = z.array(entrySchema, 'must be a list of tokens').max(MAX_TOKENS, `must have at most ${MAX_TOKENS}`);

export type TokenEntry = Readonly<z.output<typeof entrySchema>>;

/** @returns the token, which is shown once, and its line for the file */
export function createToken({ name, account, rights, perMinute }: Omit<TokenEntry, 'sha256' | 'hash'>) {
  const token = `pq_${randomBytes(32).toString('base64url')}`;
  const limit = perMinute === undefined ? '' : `, perMinute: ${perMinute}`;
  const sha256 = hash('sha256', token);
  // Quoted: some hexadecimal numbers are numbers in YAML, and so are some names.
  const line = `- { name: '${name}', account: ${account}, rights: [${rights.join(', ')}]${limit}, sha256: '${sha256}' }`;
  return { token, line };
}

const TOKEN = /^Bearer +([A-Za-z0-9_-]{20,100})$/i;

/** The tokens as their file is now, or was when it last was valid. */
export class Tokens extends CurrentFile<readonly TokenEntry[]> {
  /** @param mayBeOpen - see `ALLOW_READABLE_SECRETS`. @throws InvalidConfigError */
  constructor(path: string, accounts: readonly number[], mayBeOpen: boolean) {
    const read = (): TokenEntry[] => parseTokens(readSecretFile(path, mayBeOpen), accounts);
    super(() => readNamedBy('SERVE_TOKENS_FILE', path, read));
  }

  /** Compares with every token, each in constant time. @param authorization - the header */
  find(authorization: string | undefined): TokenEntry | undefined {
    const [, token] = TOKEN.exec(authorization ?? '') ?? [];
    if (token === undefined) return undefined;
    const given = hash('sha256', token, 'buffer');
    let found: TokenEntry | undefined;
    for (const entry of this.content) if (timingSafeEqual(entry.hash, given)) found = entry;
    return found;
  }

  /** Whether an entry is still there with its name and account: a token may have been given to another. */
  has({ sha256, name, account }: TokenEntry, right: Right): boolean {
    return this.content.some(
      (entry) =>
        entry.sha256 === sha256 && entry.name === name && entry.account === account && entry.rights.includes(right),
    );
  }
}

function parseTokens(text: string, accounts: readonly number[]): TokenEntry[] {
  const parsed = fileSchema.safeParse(parseYaml(text));
  // Without the values: one may be a token.
  if (!parsed.success) throw new InvalidConfigError(toProblems(parsed.error.issues, fileSchema));
  const problems: Problem[] = [];
  for (const [index, { account, sha256 }] of parsed.data.entries()) {
    if (!accounts.includes(account)) {
      const message = `must be one that is served: ${accounts.join(', ')} (got ${account})`;
      problems.push({ field: `${index}.account`, message });
    }
    if (parsed.data.findIndex((other) => other.sha256 === sha256) === index) continue;
    problems.push({ field: `${index}.sha256`, message: 'is there twice: each token has one entry' });
  }
  if (problems.length > 0) throw new InvalidConfigError(problems);
  return parsed.data;
}

/** The parser's own message shows the text. */
function parseYaml(text: string): unknown {
  try {
    // An empty file is no list: an editor may be about to write it.
    return parse(text);
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    throw new Error(`is no YAML: ${error.code} in line ${error.linePos?.[0].line ?? 1}`, { cause: error });
  }
}
