import { InvalidInputError } from '../../base/errors.js';
import { tryFormat } from '../intents/statement.js';
import type { Signer } from '../keys/signer.js';
import { type Act, ACT_LIFETIME_MS, formatAct, serializeAct } from './act.js';

export type ActContent = Omit<Act, 'audience' | 'by' | 'at' | 'expiresAt'>;

/** Who signs decisions. */
export interface ActSigning {
  readonly signer: Signer;
  /** The environment whose workers must accept the signature: from the configuration, never from Redis. */
  readonly audience: string;
}

/**
 * Signs a decision of an operator.
 * @param now - wall clock, ms: the start of {@link ACT_LIFETIME_MS}
 * @returns the signed act as it is stored
 * @throws InvalidInputError if a text is not one line; errors of the signer
 */
export async function signAct(
  { signer, audience }: ActSigning,
  platformId: number,
  content: ActContent,
  now: number,
): Promise<string> {
  const at = new Date(now).toISOString();
  const expiresAt = new Date(now + ACT_LIFETIME_MS).toISOString();
  const act: Act = { ...content, audience, by: signer.name, at, expiresAt };
  const text = tryFormat(() => formatAct(platformId, act));
  if (typeof text === 'string') return serializeAct({ ...act, signature: await signer.sign(text) });
  const { field, message } = text;
  throw new InvalidInputError([{ field, message: message.slice(field.length + 2) }]);
}
