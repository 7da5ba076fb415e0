import type {
  WithdrawConnection,
  WithdrawGateway,
  WithdrawOutcome,
  WithdrawRequest,
} from '../../src/gateway/gateway.js';
import type { SimGateway } from '../proofs/simulation/sim-gateway.js';
import { never, type StepProcess } from './step-process.js';
import type { StepWorld } from './step-world.js';

/** What becomes of a withdrawal; with `unheard` it is paid, and no response comes. */
export type Fate = 'paid' | 'rejected' | 'unheard' | 'never arrives';

export interface StepGatewayOptions {
  readonly world: StepWorld;
  readonly process: StepProcess;
  readonly book: SimGateway;
  readonly withdrawTimeoutMs: number;
  readonly inFlightMaxMs: number;
  /** How long a request of this process is on its way, without a deviation, in ms. */
  readonly lingerMs: number;
  /** Asked for each request that is written; paid where it is undefined. */
  readonly drawFate?: (() => Fate) | undefined;
}

const CONNECT_MS = 1;
const WRITE_MS = 0.01;
const RESPONSE_MS = 1;

/** A process's way to the gateway: the write, the arrival and the response are a step each. */
export class StepGateway implements WithdrawGateway {
  readonly #options: StepGatewayOptions;

  constructor(options: StepGatewayOptions) {
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

  #write(request: WithdrawRequest, resolve: (outcome: WithdrawOutcome) => void): void {
    const { world, process, book, withdrawTimeoutMs, inFlightMaxMs, lingerMs, drawFate } = this.#options;
    const label = request.addressTo;
    world.note(() => `${process.name} WRITES ${label}`);
    const fate = drawFate?.() ?? 'paid';
    const writtenAt = process.now();
    const durationMs = (): number => process.now() - writtenAt;
    const onTrouble = once(() => {
      process.afterOwn(withdrawTimeoutMs - durationMs(), `withdraw of ${label} without a response`, () => {
        resolve({ kind: 'unknown', reason: 'no response in time', durationMs: durationMs() });
      });
    });
    if (lingerMs >= withdrawTimeoutMs || fate === 'unheard' || fate === 'never arrives') onTrouble();
    if (fate === 'never arrives') return;
    world.after(lingerMs, {
      ...{ kind: 'arrival', label, process, onTrouble, deadline: world.now + inFlightMaxMs },
      run: () => {
        const verdict = book.arrive(request, label, fate === 'rejected');
        if (fate === 'unheard') return;
        world.after(RESPONSE_MS, {
          ...{ kind: 'response', label, process, isDelivered: true, onTrouble },
          run: () => {
            const { kind, ...details } = verdict;
            const outcome = kind === 'paid' ? { kind: 'accepted', ...details } : { kind, ...details };
            resolve({ ...outcome, durationMs: durationMs() } as WithdrawOutcome);
          },
        });
      },
    });
  }
}

/** Calls it the first time only. */
export function once(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) run();
    isDone = true;
  };
}
