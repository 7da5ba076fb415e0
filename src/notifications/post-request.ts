import type { NotificationRequest } from './format-request.js';

/** What became of one attempt. Only `delivered` ends the retries. */
export type PostOutcome =
  | { readonly kind: 'delivered' }
  | {
      readonly kind: 'failed';
      /** Never with the URL, which may hold a token, nor with what the receiver said. */
      readonly reason: string;
      /** What the receiver asked for, in ms. */
      readonly retryAfterMs?: number;
    };

const BODY_LIMIT = 64 * 1024;

/**
 * Posts once. It is delivered when the whole response has arrived and its status is 2xx: a receiver that dies in the middle
 * may have kept nothing. A redirect is not followed, because it would take the content elsewhere.
 */
export async function postRequest(
  url: string,
  { headers, body }: NotificationRequest,
  timeoutMs: number,
): Promise<PostOutcome> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { method: 'POST', headers: { ...headers }, body, redirect: 'manual', signal });
    await readToEnd(response);
    if (response.ok) return { kind: 'delivered' };
    return { kind: 'failed', reason: `the receiver responded with HTTP ${response.status}`, ...retryAfter(response) };
  } catch (error) {
    return { kind: 'failed', reason: describeFailure(error as Error, timeoutMs) };
  }
}

async function readToEnd({ body }: Response): Promise<void> {
  if (body === null) return;
  let length = 0;
  for await (const chunk of body) {
    length += (chunk as Uint8Array).length;
    if (length > BODY_LIMIT) return;
  }
}

function retryAfter({ headers }: Response): { readonly retryAfterMs?: number } {
  const seconds = headers.get('retry-after') ?? '';
  return /^\d{1,6}$/.test(seconds) ? { retryAfterMs: Number(seconds) * 1_000 } : {};
}

/** Messages of the HTTP client may name the URL; its codes do not. */
function describeFailure({ name, cause }: Error, timeoutMs: number): string {
  if (name === 'TimeoutError') return `no complete response within ${timeoutMs} ms`;
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return `no response: ${typeof code === 'string' ? code : name}`;
}
