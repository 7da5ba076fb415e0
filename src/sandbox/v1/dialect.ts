import { ENDPOINTS } from '../../gateway/v1/endpoints.js';
import type { Dialect } from '../dialect.js';
import { ENDPOINT_NAMES } from '../endpoint-name.js';
import { failed } from '../response.js';
import { handleCall } from './handle-call.js';
import { parseSignedForm, type SignedForm } from './signed-form.js';

/** The first generation: docs/gateway-api-v1.md. */
export const V1: Dialect = {
  paths: Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, ENDPOINTS[name].path])) as Dialect['paths'],
  contentType: 'application/x-www-form-urlencoded',
  malformed: 'the body is no valid form',
  unknownPlatform: 'unknown platform_id',
  parse(endpoint, body) {
    const form = parseSignedForm(body);
    if (form === undefined) return undefined;
    const txhash = fieldOf(form, 'txhash');
    return {
      platformId: form.platformId,
      addressTo: fieldOf(form, 'address_to'),
      amount: fieldOf(form, 'amount'),
      payment: txhash === undefined ? undefined : { txhash },
      isSignedWith: (secretKey) => form.isSignedWith(secretKey),
      handle: (context) => handleCall(endpoint, form, context),
    };
  },
  // The API does not define a failure's status (docs/gateway-api-v1.md#errors). The sandbox uses 200, as many gateways do.
  failed: (_endpoint, message) => failed(message),
};

function fieldOf(form: SignedForm, name: string): string | undefined {
  return form.fields.find(([field]) => field === name)?.[1];
}
