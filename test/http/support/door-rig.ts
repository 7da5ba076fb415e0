import { deepStrictEqual } from 'node:assert';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '../../../src/base/logger.js';
import { type DoorOptions, startDoor } from '../../../src/http/start-door.js';
import { createToken, type Right, RIGHTS } from '../../../src/http/tokens.js';
import { recordingLogger } from '../../gateway/support/test-client.js';
import { newPlatformId, testRedisUrl } from '../../support/account.js';
import { until } from '../../support/until.js';

export interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly headers: Headers;
  /** The fields of all answers; which ones there are depends on the route and the status. */
  readonly body: {
    readonly code: string;
    readonly detail: string;
    readonly problems: readonly { readonly field: string; readonly message: string }[];
    readonly results: readonly object[];
    readonly payouts: readonly { readonly payoutId: string }[];
    readonly next: string | null;
    readonly history: readonly object[];
    readonly queued: number;
  };
}

export interface AskOptions {
  /** @defaultValue a token with every right */
  readonly token?: string | undefined;
  readonly body?: unknown;
  /** Sent as it is. */
  readonly text?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A door of two accounts, in this process. */
export type DoorRig = Awaited<ReturnType<typeof openDoor>>;

/** The options of a door on a free port; `tokensFile` is to be written. */
export function doorOptions(tokensFile: string, changes: Partial<DoorOptions> = {}): DoorOptions {
  return {
    ...{ serveHost: '127.0.0.1', servePort: 0, serveHealthPort: 0, serveTokensFile: tokensFile },
    ...{ serveTlsCertFile: undefined, serveTlsKeyFile: undefined, serveTrustedProxies: undefined },
    ...{ platformIds: [1], redisUrl: testRedisUrl(), audiences: new Map() },
    ...{ healthHost: '127.0.0.1', mayBeOpen: false, logger: silentLogger },
    ...changes,
  };
}

export async function openDoor(changes: Partial<DoorOptions> = {}, perMinute?: number) {
  const [platformId = newPlatformId(), otherId = newPlatformId()] = changes.platformIds ?? [];
  const dir = await mkdtemp(join(tmpdir(), 'payouts-door-'));
  const tokensFile = join(dir, 'tokens.yaml');
  const lines: string[] = [];
  const make = (name: string, account: number, ...rights: Right[]) => {
    const { token, line } = createToken({ name, account, rights, perMinute });
    lines.push(`${line}\n`);
    return token;
  };
  /** With every right; of the other account; each with one right. */
  const tokens = {
    all: make('shop', platformId, ...RIGHTS),
    other: make('other-shop', otherId, ...RIGHTS),
    enqueue: make('only-enqueue', platformId, 'enqueue'),
    read: make('only-read', platformId, 'read'),
    cancel: make('only-cancel', platformId, 'cancel'),
  };
  await writeFile(tokensFile, lines.join(''), { mode: 0o600 });
  const logger = recordingLogger();
  const door = await startDoor(doorOptions(tokensFile, { logger, ...changes, platformIds: [platformId, otherId] }));
  return {
    ...{ door, platformId, tokens, tokensFile, logged: logger.lines },
    ask: async (method: string, path: string, options: AskOptions = {}) =>
      askDoor(door.url, method, path, { token: tokens.all, ...options }),
    metrics: async () => (await fetch(`${door.healthUrl}/metrics`)).text(),
    async close() {
      await door.close();
      await rm(dir, { recursive: true });
    },
  };
}

export async function askDoor(
  url: string,
  method: string,
  path: string,
  { token, body, text, headers }: AskOptions = {},
): Promise<Answer> {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  });
  const answered = await response.text();
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    headers: response.headers,
    body: JSON.parse(answered === '' ? '{}' : answered) as Answer['body'],
  };
}

export function payout(payoutId: string, changes: object = {}): object {
  return { payoutId, paymentId: 6, amount: '12.5', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', ...changes };
}

/** A reader of server-sent events, as the standard has it. */
export class EventStream {
  readonly events: { readonly id: string; readonly data: { readonly payoutId: string } }[] = [];
  lastId = '';
  text = '';
  isEnded = false;
  readonly #abort = new AbortController();

  static async open(
    { door, tokens }: Pick<DoorRig, 'door' | 'tokens'>,
    query = '',
    headers: Record<string, string> = {},
  ): Promise<EventStream> {
    const stream = new EventStream();
    const response = await fetch(`${door.url}/v1/events${query}`, {
      headers: { authorization: `Bearer ${tokens.read}`, ...headers },
      signal: stream.#abort.signal,
    });
    // Not Jest's: the fuzzer is no test.
    deepStrictEqual([response.status, response.headers.get('content-type')], [200, 'text/event-stream']);
    void stream.#read(response.body as ReadableStream<Uint8Array>);
    await until('it has a place', () => stream.lastId !== '');
    return stream;
  }

  close() {
    this.#abort.abort();
  }

  get payoutIds() {
    return this.events.map(({ data }) => data.payoutId);
  }

  async #read(body: ReadableStream<Uint8Array>) {
    let rest = '';
    try {
      for await (const text of body.pipeThrough(new TextDecoderStream())) {
        this.text += text;
        const blocks = `${rest}${text}`.split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          this.lastId = /^id: (.*)$/m.exec(block)?.[1] ?? this.lastId;
          const data = /^data: (.*)$/m.exec(block)?.[1];
          if (data !== undefined) this.events.push({ id: this.lastId, data: JSON.parse(data) as { payoutId: string } });
        }
      }
    } catch {
      // Closed by the test, or by the door.
    }
    this.isEnded = true;
  }
}
