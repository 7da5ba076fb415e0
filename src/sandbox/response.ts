import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

export interface SandboxResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a text as HTML. */
  readonly body: Readonly<Record<string, unknown>> | string;
}

/** Success: `result` 1 and the endpoint's fields. */
export function succeeded(fields: Readonly<Record<string, unknown>>): SandboxResponse {
  return { status: 200, body: { result: 1, ...fields } };
}

/**
 * The API does not define a failure's status (docs/gateway-api-v1.md#errors). The sandbox uses 200, as many gateways do.
 */
export function failed(message: string, status = 200): SandboxResponse {
  return { status, body: { result: 0, message } };
}

/** Compresses the response if the caller accepts gzip. */
export function sendResponse(request: IncomingMessage, reply: ServerResponse, response: SandboxResponse): void {
  reply.end(writeHead(request, reply, response));
}

/** Sends the head and half of the body, then ends the connection. */
export function sendTruncatedResponse(
  request: IncomingMessage,
  reply: ServerResponse,
  response: SandboxResponse,
): void {
  const bytes = writeHead(request, reply, response);
  reply.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => request.socket.destroy());
}

/** Sets the whole body's length in the headers. @returns the bytes of the body */
function writeHead(request: IncomingMessage, reply: ServerResponse, response: SandboxResponse): Buffer {
  const isText = typeof response.body === 'string';
  const text = typeof response.body === 'string' ? response.body : JSON.stringify(response.body);
  const compressed = acceptsGzip(request);
  const bytes = compressed ? gzipSync(text) : Buffer.from(text);
  reply.writeHead(response.status, {
    'content-type': isText ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
    'content-length': bytes.length,
    ...(compressed ? { 'content-encoding': 'gzip' } : {}),
    ...response.headers,
  });
  return bytes;
}

function acceptsGzip(request: IncomingMessage): boolean {
  return /(^|,)\s*gzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers['accept-encoding'] ?? '');
}
