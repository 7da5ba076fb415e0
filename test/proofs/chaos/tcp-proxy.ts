import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export type Direction = 'requests' | 'replies';

type Rewrites = Partial<Record<Direction, (bytes: Buffer) => Buffer>>;

export class TcpProxy {
  readonly #server: Server;
  readonly #rewrites: Rewrites;
  readonly #sockets = new Set<Socket>();
  readonly #silences = new Map<Direction, Readonly<{ ended: Promise<void>; end: () => void }>>();
  #drawDelayMs: () => number = () => 0;
  #refusing = false;
  #targetPort: number;

  private constructor(targetPort: number, rewrites: Rewrites) {
    this.#rewrites = rewrites;
    this.#targetPort = targetPort;
    this.#server = createServer((client) => {
      this.#join(client, this.#targetPort);
    });
  }

  static async start(targetPort: number, rewrites: Rewrites = {}) {
    const proxy = new TcpProxy(targetPort, rewrites);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get port() {
    return (this.#server.address() as AddressInfo).port;
  }

  /** From now on new connections lead there; open ones stay. */
  leadTo(targetPort: number) {
    this.#targetPort = targetPort;
  }

  slowDown(drawDelayMs: () => number) {
    this.#drawDelayMs = drawDelayMs;
  }

  cut() {
    this.#refusing = true;
    this.#endConnections();
  }

  silence(directions: readonly Direction[]) {
    for (const direction of directions) {
      if (this.#silences.has(direction)) continue;
      let end = (): void => undefined;
      const ended = new Promise<void>((resolve) => (end = resolve));
      this.#silences.set(direction, { ended, end });
    }
  }

  /** @param held - whether what was held back in a silence arrives after all */
  heal(held: 'late' | 'never' = 'late') {
    this.#drawDelayMs = () => 0;
    this.#refusing = false;
    if (held === 'never') this.#endConnections();
    for (const { end } of this.#silences.values()) end();
    this.#silences.clear();
  }

  async close() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    this.heal('never');
    await closed;
  }

  #endConnections() {
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(client: Socket, targetPort: number) {
    if (this.#refusing) {
      client.destroy();
      return;
    }
    const target = connect(targetPort, '127.0.0.1');
    this.#pass('requests', client, target);
    this.#pass('replies', target, client);
  }

  #pass(direction: Direction, from: Socket, to: Socket) {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('error', () => undefined);
    from.once('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    let last = Promise.resolve();
    from.on('data', (bytes) => {
      const delayMs = this.#drawDelayMs();
      last = last.then(async () => {
        if (delayMs > 0) await delay(delayMs);
        for (let silence = this.#silences.get(direction); silence; silence = this.#silences.get(direction)) {
          await silence.ended;
        }
        if (!to.destroyed) to.write(this.#rewrites[direction]?.(bytes) ?? bytes);
      });
    });
  }
}
