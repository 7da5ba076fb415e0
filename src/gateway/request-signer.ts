import { toPackageName } from './endpoints.js';
import { encodeForm, signForm, type FormFields } from './signing.js';

export interface SignedRequest {
  readonly body: string;
  /** Removes the signature from a text, in case the gateway repeats it in an error message. */
  readonly redact: (text: string) => string;
}

/**
 * @param signedFields - the API's names, in signing order; fields without a value are left out
 * @param request - values under this package's names
 */
export type RequestSigner = (signedFields: readonly string[], request: object) => SignedRequest;

/** Signs for one account. The key stays in this closure, hidden from JSON and inspectors. */
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

export function toFormFields(signedFields: readonly string[], values: object): FormFields {
  const valueOf = new Map<string, string | number | undefined>(Object.entries(values));
  return Object.fromEntries(
    signedFields.flatMap((name) => {
      const value = valueOf.get(toPackageName(name));
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
