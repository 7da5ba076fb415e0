import { failed, type SandboxResponse } from './response.js';
import type { FaultStrike } from './fault-plan.js';
import type { EndpointName } from './endpoint.js';

type Fault = NonNullable<FaultStrike['fault']>;

export const BLOCKED_MESSAGE = 'account blocked';

/** The response of a fault that replaces the processing of the call; undefined for a fault that lets it through. */
export function refusalOf(fault: Fault | undefined, endpoint: EndpointName): SandboxResponse | undefined {
  switch (fault?.kind) {
    case 'reject':
      return failed(fault.message ?? 'rejected by the sandbox');
    case 'block':
      return failed(BLOCKED_MESSAGE);
    case 'rate-429':
      return { ...failed('too many requests', 429), headers: { 'retry-after': '1' } };
    case 'redirect-307':
      return { status: 307, headers: { location: `/${endpoint}` }, body: '' };
    default:
      return undefined;
  }
}

/** Applies a fault to the response to a call that was processed. */
export function spoil(fault: Fault | undefined, response: SandboxResponse): SandboxResponse {
  const { body } = response;
  if (typeof body === 'string') return response;
  switch (fault?.kind) {
    case 'html-502':
      return { status: 502, body: '<html><body><h1>502 Bad Gateway</h1></body></html>' };
    case 'json-500':
      return { status: 500, body: { message: 'internal error' } };
    case 'wrong-json':
      return { status: 200, body: { status: 'ok', data: [1, 2, 3] } };
    case 'no-txhash':
      return { ...response, body: Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'txhash')) };
    case 'string-result':
      return { ...response, body: { ...body, result: String(body['result']) } };
    default:
      return response;
  }
}
