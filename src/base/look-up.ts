import { spawn, type ChildProcess } from 'node:child_process';
import { lookup, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { within } from './clock.js';

interface Lasting {
  /** Ms without asking again. */
  readonly freshMs: number;
  /** Ms during another look-up, however long. */
  readonly keptMs: number;
}

/** Finds a gateway with a slow name at once, and one that moved within half a minute. */
const OF_GATEWAY: Lasting = { freshMs: 30_000, keptMs: 10 * 60_000 };

/** Finds a Redis that failed over at once. An answer that came too late for one attempt counts for the next one. */
const OF_REDIS: Lasting = { freshMs: 5_000, keptMs: 0 };

/** A look-up without an answer is then forgotten, so that the next connection asks again. */
const ANSWER_WITHIN_MS = 60_000;

export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

interface KnownName {
  readonly addresses: readonly LookupAddress[];
  readonly at: number;
}

/**
 * The addresses of names. One look-up a name at a time serves all waiting connections. A connection that gives up
 * leaves no look-up of its own behind.
 */
export class Names {
  readonly #resolve: Resolve;
  readonly #now: () => number;
  readonly #known = new Map<string, KnownName>();
  readonly #pending = new Map<string, Promise<readonly LookupAddress[]>>();

  /** @param now - monotonic, ms */
  constructor(resolve: Resolve, now: () => number = () => performance.now()) {
    this.#resolve = resolve;
    this.#now = now;
  }

  async find(host: string, { freshMs, keptMs }: Lasting = OF_GATEWAY): Promise<readonly LookupAddress[]> {
    const known = this.#known.get(host);
    const ageMs = known === undefined ? Infinity : this.#now() - known.at;
    if (known !== undefined && ageMs < freshMs) return known.addresses;
    const asked = this.#ask(host);
    if (known === undefined || ageMs >= keptMs) return asked;
    // The next connection uses the answer.
    asked.catch(() => undefined);
    return known.addresses;
  }

  /** Call after a failed connection: the next one looks the name up again. */
  forget(host: string): void {
    this.#known.delete(host);
  }

  async #ask(host: string): Promise<readonly LookupAddress[]> {
    const pending = this.#pending.get(host);
    if (pending !== undefined) return pending;
    const asked = within(ANSWER_WITHIN_MS, this.#resolve(host)).then((addresses) => {
      if (addresses === undefined) throw new Error(`no answer to the look-up of ${host}`);
      this.#known.set(host, { addresses, at: this.#now() });
      return addresses;
    });
    this.#pending.set(host, asked);
    const end = (): void => void this.#pending.delete(host);
    asked.then(end, end);
    return asked;
  }
}

/** Node's look-up. It occupies one of the few threads until there is an answer. */
export const resolveHere: Resolve = async (host) =>
  new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });

/**
 * Runs in a process of its own, with many threads. It ends with its parent, not by a signal that a terminal or systemd
 * sends to both: the parent may need it for its last send. SIGUSR1 would open Node's inspector.
 */
const HELPER = `
process.env.UV_THREADPOOL_SIZE = '256';
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1']) process.on(signal, () => {});
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('message', (host) => {
  require('node:dns').lookup(host, { all: true }, (error, addresses) => {
    process.send({ host, addresses, error: error && { message: error.message, code: error.code } });
  });
});
`;

interface HelperReply {
  readonly host: string;
  readonly addresses?: readonly LookupAddress[];
  readonly error?: { readonly message: string; readonly code?: string } | null;
}

/**
 * Looks names up in parallel. libuv looks up only two at a time, so two slow names would delay every account, and
 * Redis. The process itself looks up one; a helper process looks up the others, and ends when idle.
 */
export class SpreadResolver {
  readonly #here: Resolve;
  readonly #program: string;
  #isBusy = false;
  #helper: ChildProcess | undefined;
  readonly #waiting = new Map<string, (reply: HelperReply | undefined) => void>();

  constructor(here: Resolve = resolveHere, program = HELPER) {
    this.#here = here;
    this.#program = program;
  }

  readonly resolve: Resolve = async (host) => {
    if (this.#isBusy) return this.#resolveInHelper(host);
    this.#isBusy = true;
    try {
      return await this.#here(host);
    } finally {
      this.#isBusy = false;
    }
  };

  async #resolveInHelper(host: string): Promise<readonly LookupAddress[]> {
    const reply = await new Promise<HelperReply | undefined>((resolve) => {
      this.#waiting.set(host, resolve);
      const helper = (this.#helper ??= this.#start());
      helper.send(host, (error) => {
        if (error !== null) this.#end(helper);
      });
    });
    this.#waiting.delete(host);
    if (this.#waiting.size === 0 && this.#helper !== undefined) this.#end(this.#helper);
    // The helper could not be started, or ended.
    if (reply === undefined) return this.#here(host);
    if (reply.addresses === undefined) throw Object.assign(new Error(reply.error?.message), reply.error);
    return reply.addresses;
  }

  #start(): ChildProcess {
    const helper = spawn(process.execPath, ['-e', this.#program], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    helper.on('message', (reply: HelperReply) => this.#waiting.get(reply.host)?.(reply));
    helper.once('error', () => {
      this.#end(helper);
    });
    helper.once('exit', () => {
      this.#end(helper);
    });
    return helper;
  }

  #end(helper: ChildProcess): void {
    if (this.#helper !== helper) return;
    this.#helper = undefined;
    helper.kill('SIGKILL');
    for (const reply of this.#waiting.values()) reply(undefined);
  }
}

export const names = new Names(new SpreadResolver().resolve);

function lookUpFor(lasting: Lasting): LookupFunction {
  return (host, { family, all }, callback) => {
    const wanted = family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : undefined;
    names.find(host, lasting).then(
      (found) => {
        const addresses = found.filter((each) => wanted === undefined || each.family === wanted);
        const [first] = addresses;
        if (first === undefined) callback(Object.assign(new Error(`no address of ${host}`), { code: 'ENOTFOUND' }), '');
        else if (all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => {
        callback(error as NodeJS.ErrnoException, '');
      },
    );
  };
}

/** Replaces `dns.lookup` in Node's `connect` and agents. */
export const lookUpGateway = lookUpFor(OF_GATEWAY);
export const lookUpRedis = lookUpFor(OF_REDIS);
