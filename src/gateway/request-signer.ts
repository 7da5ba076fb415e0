import { toFormFields, type Endpoint, type RequestData } from './schemas.js';
import { encodeForm, signForm } from './signing.js';

export interface SignedRequest {
  /** The bytes to post: the signed payload, then `hash`. */
  readonly body: string;
  /** Takes the signature out of a text, should the gateway repeat it in an error message. */
  readonly redact: (text: string) => string;
}

export type RequestSigner = (endpoint: Endpoint, data: Omit<RequestData, 'platformId'>) => SignedRequest;

/** Signs for one account. The key stays in this closure, where neither JSON nor an inspector finds it. */
export function createRequestSigner(platformId: number, secretKey: string): RequestSigner {
  return (endpoint, data) => {
    const payload = encodeForm(toFormFields(endpoint, { ...data, platformId }));
    const hash = signForm(payload, secretKey);
    return {
      body: `${payload}&hash=${hash}`,
      redact: (text) => text.replace(new RegExp(hash, 'gi'), '[hash]'),
    };
  };
}
