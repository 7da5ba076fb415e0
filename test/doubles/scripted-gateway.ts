import type {
  WithdrawConnection,
  WithdrawGateway,
  WithdrawOutcome,
  WithdrawRequest,
} from '../../src/gateway/gateway.js';
import { classifyStop } from '../../src/gateway/stop-sign.js';
import type { ManualClock } from './manual-clock.js';

interface ScriptedConnection extends WithdrawConnection {
  usable: boolean;
  readonly openedAt: number;
  readonly isClosed: boolean;
}

interface Arrival {
  readonly at: number;
  readonly request: WithdrawRequest;
}

/** A gateway that does what a test says. It asks `mayWrite` as the real one does, and responds after `responseMs`. */
export class ScriptedGateway implements WithdrawGateway {
  readonly connections: ScriptedConnection[] = [];
  readonly arrivals: Arrival[] = [];
  outcome: WithdrawOutcome = { kind: 'accepted', gatewayId: 'h', durationMs: 100 };
  responseMs = 100;
  opensUsable = true;
  resendsForMs = 0;
  /** Ends a withdrawal under way. */
  #reset: ((reason: string) => void) | undefined;
  onOpen: (count: number) => void | Promise<void> = () => undefined;
  beforeWrite: () => void | Promise<void> = () => undefined;
  readonly #clock: ManualClock;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  onProbe: () => void | Promise<void> = () => undefined;

  readonly classifyStop = classifyStop;

  async probe() {
    await this.onProbe();
  }

  async openConnection(): Promise<WithdrawConnection> {
    await this.onOpen(this.connections.length + 1);
    let isClosed = false;
    const connection: ScriptedConnection = {
      usable: this.opensUsable,
      resendsForMs: this.resendsForMs,
      reset: (reason) => this.#reset?.(reason),
      openedAt: this.#clock.now(),
      get isClosed() {
        return isClosed;
      },
      withdraw: async (request, { mayWrite }) => this.#withdraw(request, mayWrite),
      close: () => {
        isClosed = true;
      },
    };
    this.connections.push(connection);
    return connection;
  }

  async #withdraw(request: WithdrawRequest, mayWrite: () => boolean): Promise<WithdrawOutcome> {
    await this.beforeWrite();
    if (!mayWrite()) return { kind: 'not_sent', reason: 'permission to write was refused' };
    if (this.outcome.kind === 'not_sent') return this.outcome;
    this.arrivals.push({ at: this.#clock.now(), request });
    const startedAt = this.#clock.now();
    const reset = new Promise<WithdrawOutcome>((resolve) => {
      this.#reset = (reason) => {
        resolve({ kind: 'unknown', reason, durationMs: this.#clock.now() - startedAt });
      };
    });
    return Promise.race([this.#clock.sleep(this.responseMs).then(() => this.outcome), reset]);
  }
}
