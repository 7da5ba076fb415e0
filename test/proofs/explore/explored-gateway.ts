import type {
  WithdrawConnection,
  WithdrawGateway,
  WithdrawOutcome,
  WithdrawRequest,
} from '../../../src/gateway/gateway.js';
import type { SimGateway } from '../simulation/sim-gateway.js';
import { never, type ExploredProcess } from './explored-process.js';
import type { ExploredWorld } from './explored-world.js';

export interface ExploredGatewayOptions {
  readonly world: ExploredWorld;
  readonly process: ExploredProcess;
  readonly gateway: SimGateway;
  readonly withdrawTimeoutMs: number;
  readonly inFlightMaxMs: number;
  /** How long a request of this process is on its way, without a deviation, in ms. */
  readonly lingerMs: number;
}

const CONNECT_MS = 1;
const WRITE_MS = 0.01;
const RESPONSE_MS = 1;

/** A process's way to the gateway: the write, the arrival and the response are a step each. */
export class ExploredGateway implements WithdrawGateway {
  readonly #options: ExploredGatewayOptions;

  constructor(options: ExploredGatewayOptions) {
    this.#options = options;
  }

  async openConnection(): Promise<WithdrawConnection> {
    await this.#options.process.takeMs(CONNECT_MS, 'connect');
    return {
      usable: true,
      withdraw: async (request, { mayWrite }) => this.#withdraw(request, mayWrite),
      close: () => undefined,
    };
  }

  /** Changes nothing at the gateway, so that it is no step. */
  async probe(): Promise<void> {
    return Promise.resolve();
  }

  async #withdraw(request: WithdrawRequest, mayWrite: () => boolean): Promise<WithdrawOutcome> {
    const { world, process } = this.#options;
    if (process.isDead) return never();
    return new Promise((resolve) => {
      world.after(WRITE_MS, {
        ...{ kind: 'write', label: request.addressTo, process, isDelivered: true },
        run: () => {
          if (mayWrite()) this.#write(request, resolve);
          else resolve({ kind: 'not_sent', reason: 'not allowed any more' });
        },
      });
    });
  }

  #write({ addressTo, ...request }: WithdrawRequest, resolve: (outcome: WithdrawOutcome) => void): void {
    const { world, process, gateway, withdrawTimeoutMs, inFlightMaxMs, lingerMs } = this.#options;
    world.note(() => `${process.name} WRITES ${addressTo}`);
    const writtenAt = process.now();
    const durationMs = (): number => process.now() - writtenAt;
    let isWatched = false;
    const onTrouble = (): void => {
      if (isWatched) return;
      isWatched = true;
      process.afterOwn(withdrawTimeoutMs - durationMs(), `withdraw of ${addressTo} without a response`, () => {
        resolve({ kind: 'unknown', reason: 'no response in time', durationMs: durationMs() });
      });
    };
    if (lingerMs >= withdrawTimeoutMs) onTrouble();
    world.after(lingerMs, {
      ...{ kind: 'arrival', label: addressTo, process, onTrouble },
      deadline: world.now + inFlightMaxMs,
      run: () => {
        const verdict = gateway.arrive({ addressTo, ...request }, addressTo, false);
        world.after(RESPONSE_MS, {
          ...{ kind: 'response', label: addressTo, process, isDelivered: true, onTrouble },
          run: () => {
            if (verdict.kind === 'paid')
              resolve({ kind: 'accepted', txhash: verdict.txhash, durationMs: durationMs() });
          },
        });
      },
    });
  }
}
