import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { SignerError } from '../../base/errors.js';
import { isSignedBy, type KeyringKey } from './keyring.js';

/**
 * Signs with one key of the keyring, wherever that key is. See `openSigner`. One of your own has the limits of an agent:
 * 5 s for a signature, and 32 at a time.
 */
export interface Signer {
  /** The key's name in the keyring. */
  readonly name: string;
  /**
   * @returns the signature of the text as UTF-8: base64url of Ed25519 (86 characters), or, of an operator or approver,
   * the armoured text of `ssh-keygen -Y sign`
   * @throws SignerError if there is none
   */
  readonly sign: (text: string) => Promise<string>;
}

/** How long an agent or a program may take for a signature by default, in ms. */
export const SIGN_WITHIN_MS = 5_000;

/**
 * Runs work that can hang.
 * @param what - did not answer, for the error
 * @param work - ends what it began once the signal is aborted
 * @throws SignerError if the time is over
 */
export async function inTime<Result>(
  what: string,
  work: (end: AbortSignal) => Promise<Result>,
  limitMs: number,
): Promise<Result> {
  const end = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new SignerError(`${what} did not answer within ${limitMs / 1000} s`));
    }, limitMs);
  });
  try {
    return await Promise.race([work(end.signal), late]);
  } finally {
    clearTimeout(timer);
    end.abort('ended');
  }
}

/** Asks at most so many at a time. A failure also ends what waits, so that nothing waits for many time limits. */
export class FewAtATime {
  readonly #limit: number;
  readonly #waiting: { readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<Result>(ask: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.#limit) this.#running += 1;
    else {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push({ resolve, reject });
      });
    }
    try {
      return await ask();
    } catch (error) {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
      throw error;
    } finally {
      // The next one takes over the place.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next.resolve();
    }
  }
}

/** An agent signs one after the other; a hardware module behind it may have few sessions. */
export const ASKED_AT_ONCE = 32;

/** The same signer, with the limits of an agent. One of `openSigner` has its own. */
export function limitSigner(signer: Signer): Signer {
  if ('isInteractive' in signer) return signer;
  const { name } = signer;
  const few = new FewAtATime(ASKED_AT_ONCE);
  const ask = async (text: string): Promise<string> =>
    inTime(`The signer "${name}"`, async () => signer.sign(text), SIGN_WITHIN_MS);
  return { name, sign: async (text) => few.run(async () => ask(text)) };
}

/**
 * Has a text signed that is no statement, so that nothing can come of the signature.
 * @param key - whose signature it must be; undefined if it is unknown here
 * @throws SignerError if there is no signature; OtherKeyError if it is another key's
 */
export async function trySigner(signer: Signer, key: Pick<KeyringKey, 'public'> | undefined): Promise<void> {
  const text = `payout-queue trial of a signer\n${randomBytes(16).toString('hex')}\n`;
  const signature = await signer.sign(text);
  if (key !== undefined && !isSignedBy(key, text, signature)) throw new OtherKeyError(signer.name);
}

/** What came back is no signature of the key. */
export class OtherKeyError extends SignerError {
  constructor(name: string) {
    super(`The signer's answer is no signature of the key "${name}": does it sign with another key?`);
  }
}

/** Where a signer's key is: see `openSigner`. */
export type SignerKind = 'file' | 'agent' | 'exec' | 'ssh';

/** A path alone is a file. */
export function splitSigner(from: string): [kind: SignerKind, rest: string] {
  const [, kind = 'file', rest = from] = /^(file|agent|exec|ssh):(.*)$/s.exec(from) ?? [];
  return [kind as SignerKind, rest];
}

/** The same signer, with its path relative to a folder. */
export function resolveSigner(from: string, folder: string): string {
  const [kind, rest] = splitSigner(from);
  return kind === 'agent' ? from : `${kind}:${resolve(folder, rest)}`;
}
