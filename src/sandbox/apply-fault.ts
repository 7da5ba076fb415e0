import { failed, type Answer } from './response.js';
import type { FaultStrike } from './fault-plan.js';
import type { Endpoint } from './endpoint.js';

type Fault = NonNullable<FaultStrike['fault']>;

export const BLOCKED_MESSAGE = 'account blocked';

/** The answer of a fault that stands in the place of processing the call; nothing for a fault that lets it through. */
export function refusalOf(fault: Fault | undefined, endpoint: Endpoint): Answer | undefined {
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

/** What a fault makes of the answer to a call that was processed. */
export function spoil(fault: Fault | undefined, answer: Answer): Answer {
  const { body } = answer;
  if (typeof body === 'string') return answer;
  switch (fault?.kind) {
    case 'html-502':
      return { status: 502, body: '<html><body><h1>502 Bad Gateway</h1></body></html>' };
    case 'json-500':
      return { status: 500, body: { message: 'internal error' } };
    case 'wrong-json':
      return { status: 200, body: { status: 'ok', data: [1, 2, 3] } };
    case 'no-txhash':
      return { ...answer, body: Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'txhash')) };
    case 'string-result':
      return { ...answer, body: { ...body, result: String(body['result']) } };
    default:
      return answer;
  }
}
