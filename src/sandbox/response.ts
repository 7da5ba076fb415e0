import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

/** An HTTP answer that was not sent yet. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a text as HTML. */
  readonly body: Readonly<Record<string, unknown>> | string;
}

/** A call that worked: `result` 1 and the endpoint's fields. */
export function succeeded(fields: Readonly<Record<string, unknown>>): Answer {
  return { status: 200, body: { result: 1, ...fields } };
}

/** A call that failed. The document names no status for these; like many gateways the sandbox says 200. */
export function failed(message: string, status = 200): Answer {
  return { status, body: { result: 0, message } };
}

/** Sends the whole answer, compressed where the caller takes gzip. */
export function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  response.end(writeHead(request, response, answer));
}

/** Sends the head and half of the body, then ends the connection. */
export function sendTruncatedAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const bytes = writeHead(request, response, answer);
  response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => request.socket.destroy());
}

/** Writes status and headers, among them the length of the whole body, and gives the body's bytes. */
function writeHead(request: IncomingMessage, response: ServerResponse, answer: Answer): Buffer {
  const isText = typeof answer.body === 'string';
  const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
  const compressed = acceptsGzip(request);
  const bytes = compressed ? gzipSync(text) : Buffer.from(text);
  response.writeHead(answer.status, {
    'content-type': isText ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
    'content-length': bytes.length,
    ...(compressed ? { 'content-encoding': 'gzip' } : {}),
    ...answer.headers,
  });
  return bytes;
}

function acceptsGzip(request: IncomingMessage): boolean {
  return /(^|,)\s*gzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers['accept-encoding'] ?? '');
}
