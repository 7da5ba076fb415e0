import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

/** An HTTP response before it is sent. */
export interface SandboxResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a text as HTML. */
  readonly body: Readonly<Record<string, unknown>> | string;
}

/** A call that worked: `result` 1 and the endpoint's fields. */
export function succeeded(fields: Readonly<Record<string, unknown>>): SandboxResponse {
  return { status: 200, body: { result: 1, ...fields } };
}

/** A call that failed. Its status is not defined (docs/gateway-api.md#errors); like many gateways the sandbox uses 200. */
export function failed(message: string, status = 200): SandboxResponse {
  return { status, body: { result: 0, message } };
}

/** Sends the whole response, compressed where the caller accepts gzip. */
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

/** Writes status and headers, including the length of the whole body. @returns the bytes of the body */
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
