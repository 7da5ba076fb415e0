import { resolve } from 'node:path';

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
