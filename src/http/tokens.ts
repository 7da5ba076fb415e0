import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { parse, YAMLParseError } from 'yaml';
import { z } from 'zod';
import { InvalidConfigError } from '../base/errors.js';
import { keyNameField, platformIdField, toProblems, wholeNumberField } from '../base/fields.js';
import { readSecretFile } from '../base/trusted-file.js';
import { CurrentFile, readNamedBy } from '../control/keys/current-file.js';

/** Who may do what through the door: a file of token hashes. A token is random, so SHA-256 suffices. */

export const RIGHTS = ['enqueue', 'read', 'cancel'] as const;
export type Right = (typeof RIGHTS)[number];

const MAX_TOKENS = 1_000;

const entrySchema = z.strictObject({
  /** The client. Cancellations have it as `by`. */
  name: keyNameField,
  account: platformIdField,
  rights: z.array(z.enum(RIGHTS, `must be of ${RIGHTS.join(', ')}`), 'must be a list').min(1, 'must not be empty'),
  sha256: z.string('must be a string').regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits, not the token itself'),
  /** Requests and payouts a minute, counted for all tokens of the name. */
  perMinute: wholeNumberField(1).optional(),
});

const fileSchema = z.array(entrySchema, 'must be a list of tokens').max(MAX_TOKENS, `must have at most ${MAX_TOKENS}`);

/** One token of the file. */
export type TokenEntry = Readonly<z.output<typeof entrySchema>>;

type NewToken = Pick<TokenEntry, 'name' | 'account' | 'rights' | 'perMinute'>;

/** @returns the token, which is shown once, and its line for the file. @throws InvalidInputError */
export function createToken({ name, account, rights, perMinute }: NewToken): { token: string; line: string } {
  const token = `pq_${randomBytes(32).toString('base64url')}`;
  const limit = perMinute === undefined ? '' : `, perMinute: ${perMinute}`;
  const sha256 = digest(token).toString('hex');
  // Quoted: some hexadecimal numbers are numbers in YAML, and so are some names.
  const line = `- { name: '${name}', account: ${account}, rights: [${rights.join(', ')}]${limit}, sha256: '${sha256}' }`;
  return { token, line };
}

const TOKEN = /^Bearer +([A-Za-z0-9_-]{20,100})$/i;

/** The tokens as their file is now. */
export class Tokens {
  readonly #file: CurrentFile<readonly (TokenEntry & { readonly hash: Buffer })[]>;

  /**
   * @param accounts - that are served; a token of another is refused
   * @param mayBeOpen - see `ALLOW_READABLE_SECRETS`
   * @throws InvalidConfigError if the file is missing, not trusted or invalid
   */
  constructor(path: string, accounts: readonly number[], mayBeOpen: boolean) {
    this.#file = new CurrentFile(() =>
      readNamedBy('SERVE_TOKENS_FILE', path, () =>
        parseTokens(readSecretFile(path, mayBeOpen), accounts).map((entry) => ({
          ...entry,
          hash: Buffer.from(entry.sha256, 'hex'),
        })),
      ),
    );
  }

  /** Why the file could not be read again: the tokens before it still count. */
  get trouble(): string | undefined {
    return this.#file.trouble;
  }

  reload(): boolean {
    return this.#file.reload();
  }

  /** Compares with every token, each in constant time. @param authorization - the header */
  find(authorization: string | undefined): TokenEntry | undefined {
    const [, token] = TOKEN.exec(authorization ?? '') ?? [];
    if (token === undefined) return undefined;
    const given = digest(token);
    let found: TokenEntry | undefined;
    for (const entry of this.#file.content) if (timingSafeEqual(entry.hash, given)) found = entry;
    return found;
  }

  /** Whether the token still counts, with this right. */
  has({ sha256 }: TokenEntry, right: Right): boolean {
    return this.#file.content.some((entry) => entry.sha256 === sha256 && entry.rights.includes(right));
  }
}

function parseTokens(text: string, accounts: readonly number[]): TokenEntry[] {
  const parsed = fileSchema.safeParse(parseYaml(text));
  // Without the values: one may be a token.
  if (!parsed.success) throw new InvalidConfigError(toProblems(parsed.error.issues, fileSchema));
  const problems = parsed.data.flatMap(({ account, sha256 }, index) => [
    ...(accounts.includes(account)
      ? []
      : [
          { field: `${index}.account`, message: `must be one that is served: ${accounts.join(', ')} (got ${account})` },
        ]),
    ...(parsed.data.findIndex((other) => other.sha256 === sha256) === index
      ? []
      : [{ field: `${index}.sha256`, message: 'is there twice: each token has one entry' }]),
  ]);
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

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
