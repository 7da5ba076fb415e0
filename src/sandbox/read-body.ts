import type { IncomingMessage } from 'node:http';

const MAX_BODY_BYTES = 1024 * 1024;

/** Reads a request to its end, because only then has it arrived. */
export async function readBody(request: IncomingMessage): Promise<Buffer | 'incomplete' | 'too_large'> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      // Read on without keeping it: a response before the end of the request would be lost.
      if (length <= MAX_BODY_BYTES) chunks.push(chunk);
    }
  } catch {
    return 'incomplete';
  }
  return length <= MAX_BODY_BYTES ? Buffer.concat(chunks) : 'too_large';
}
