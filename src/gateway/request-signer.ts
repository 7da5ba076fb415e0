import { toPackageName } from './endpoints.js';
import { encodeForm, signForm, type FormFields } from './signing.js';

export interface SignedRequest {
  /** The bytes to post: the signed payload, then `hash`. */
  readonly body: string;
  /** Removes the signature from a text, in case the gateway repeats it in an error message. */
  readonly redact: (text: string) => string;
}

/**
 * @param signedFields - the API's names, in the order in which they are signed; those without a value are left out
 * @param request - the values under this package's names
 */
export type RequestSigner = (signedFields: readonly string[], request: object) => SignedRequest;

/** Signs for one account. The key stays in this closure, where neither JSON nor an inspector finds it. */
export function createRequestSigner(platformId: number, secretKey: string): RequestSigner {
  return (signedFields, request) => {
    const payload = encodeForm(toFormFields(signedFields, { ...request, platformId }));
    const hash = signForm(payload, secretKey);
    return {
      body: `${payload}&hash=${hash}`,
      redact: (text) => text.replace(new RegExp(hash, 'gi'), '[hash]'),
    };
  };
}

/** Brings checked values into the names and the order that are signed. */
export function toFormFields(signedFields: readonly string[], values: object): FormFields {
  const valueOf = new Map<string, string | number | undefined>(Object.entries(values));
  return Object.fromEntries(
    signedFields.flatMap((name) => {
      const value = valueOf.get(toPackageName(name));
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
