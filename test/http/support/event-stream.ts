import { expect } from '@jest/globals';
import { until } from '../../support/until.js';
import type { DoorRig } from './door-rig.js';

interface EventData {
  readonly payoutId: string;
}

/** A reader of server-sent events, as the standard has it. */
export class EventStream {
  readonly events: { readonly id: string; readonly data: EventData }[] = [];
  lastId = '';
  text = '';
  isEnded = false;
  readonly #abort = new AbortController();

  static async open(rig: DoorRig, query = '', headers: Record<string, string> = {}): Promise<EventStream> {
    const stream = new EventStream();
    const response = await fetch(`${rig.door.url}/v1/events${query}`, {
      headers: { authorization: `Bearer ${rig.tokens.read}`, ...headers },
      signal: stream.#abort.signal,
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    void stream.#read(response.body as ReadableStream<Uint8Array>);
    await until('it has a place', () => stream.lastId !== '');
    return stream;
  }

  close(): void {
    this.#abort.abort();
  }

  get payoutIds(): string[] {
    return this.events.map(({ data }) => data.payoutId);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    try {
      for await (const chunk of body) {
        const text = decoder.decode(chunk, { stream: true });
        this.text += text;
        const blocks = `${rest}${text}`.split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          const id = /^id: (.*)$/m.exec(block)?.[1];
          const data = /^data: (.*)$/m.exec(block)?.[1];
          if (id !== undefined) this.lastId = id;
          if (data !== undefined) this.events.push({ id: this.lastId, data: JSON.parse(data) as EventData });
        }
      }
    } catch {
      // Closed by the test, or by the door.
    }
    this.isEnded = true;
  }
}
