import {
  GatewayUnavailableError,
  type WithdrawConnection,
  type WithdrawGateway,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../../../src/gateway/gateway.js';
import type { FaultInjector } from './fault-injector.js';
import { nearBoundary, type Plan } from './plan.js';
import type { SimGateway, Verdict } from './sim-gateway.js';
import type { SimPolicy } from './policed/sim-policy.js';
import type { SignedBook } from './signed/signed-book.js';
import type { SimProcess } from './sim-process.js';

export interface GatewayLinkOptions {
  readonly process: SimProcess;
  readonly gateway: SimGateway;
  readonly plan: Plan;
  readonly injector: FaultInjector;
  /** In signed mode: what was signed. */
  readonly book?: Pick<SignedBook, 'written'> | undefined;
  /** Where a policy counts. */
  readonly policy?: Pick<SimPolicy, 'written'> | undefined;
}

/** A process's way to the gateway: requests arrive late but within `inFlightMaxMs`, or never; responses are lost or unclear. */
export class GatewayLink implements WithdrawGateway {
  readonly #options: GatewayLinkOptions;

  constructor(options: GatewayLinkOptions) {
    this.#options = options;
  }

  async openConnection(signal: AbortSignal): Promise<WithdrawConnection> {
    const { process, plan } = this.#options;
    const { world } = process;
    await process.takeMs(world.fault(0.05) ? nearBoundary(world.random, plan.settings) : world.random.between(0.5, 5));
    if (signal.aborted) throw new GatewayUnavailableError('aborted');
    if (world.fault(plan.faults.connectFails)) throw new GatewayUnavailableError('connection refused');
    const endsAt = world.fault(plan.faults.connectionEnds) ? world.now + world.random.between(0, 1_500) : Infinity;
    const isUsable = (): boolean => world.now < endsAt;
    return {
      get usable() {
        return isUsable();
      },
      withdraw: async (request, { mayWrite }) => this.#withdraw(request, () => isUsable() && mayWrite()),
      close: () => undefined,
    };
  }

  async probe(signal: AbortSignal): Promise<void> {
    const { process, plan } = this.#options;
    const { world } = process;
    world.situations.meet('a gateway is probed');
    await process.takeMs(this.#delayMs(1, 500));
    if (signal.aborted) throw new GatewayUnavailableError('aborted');
    if (world.fault(plan.faults.responseLost)) throw new GatewayUnavailableError('no response to a probe');
  }

  async #withdraw(request: WithdrawRequest, mayWrite: () => boolean): Promise<WithdrawOutcome> {
    const { process, injector } = this.#options;
    // The real connection looks at what has reached the machine before it asks: a process may be stopped there.
    injector.strike(process, 'before the write', 'withdraw');
    await process.takeMs(0.01);
    if (!mayWrite()) return { kind: 'not_sent', reason: 'not allowed any more' };
    return new Promise((resolve) => {
      this.#write(request, resolve);
    });
  }

  #write(request: WithdrawRequest, resolve: (outcome: WithdrawOutcome) => void): void {
    const { process, plan, injector, book, policy } = this.#options;
    const { world } = process;
    const { faults, settings } = plan;
    const startedAt = process.now();
    const conclude =
      (outcome: () => WithdrawOutcome): (() => void) =>
      () => {
        resolve(outcome());
      };
    const durationMs = (): number => process.now() - startedAt;
    const lost = (reason: string) => (): WithdrawOutcome => ({ kind: 'unknown', reason, durationMs: durationMs() });
    world.note(() => `${process.name} WRITES ${request.addressTo}`);
    book?.written(process, request);
    policy?.written(process, request);
    world.situations.written(process.name, settings.inFlightMaxMs);

    // The promise takes the first of these that comes.
    process.afterOwn(settings.withdrawTimeoutMs, conclude(lost('no whole response in time')));
    if (world.fault(faults.cut)) process.after(this.#delayMs(1, 200), conclude(lost('reset')));
    if (!world.fault(faults.requestLost)) {
      world.after(this.#arrivalMs(), () => {
        this.#arrive(request, (verdict) => {
          resolve(this.#read(verdict, durationMs()));
        });
      });
    }
    injector.strike(process, 'after the write', 'withdraw');
  }

  #arrive(request: WithdrawRequest, respond: (verdict: Verdict) => void): void {
    const { process, gateway, plan, injector } = this.#options;
    const { world } = process;
    world.situations.arrived(process.name);
    const verdict = gateway.arrive(request, request.addressTo, world.fault(plan.faults.rejected));
    injector.strike(process, 'response', 'withdraw');
    if (world.fault(plan.faults.responseLost)) return;
    const isLate = world.fault(plan.faults.responseLate);
    process.after(isLate ? nearBoundary(world.random, plan.settings) : this.#delayMs(1, 500), () => {
      respond(verdict);
    });
  }

  #read(verdict: Verdict, durationMs: number): WithdrawOutcome {
    const { world } = this.#options.process;
    if (world.fault(this.#options.plan.faults.responseUnclear)) {
      return { kind: 'unknown', reason: 'HTTP 502 with a page of HTML', durationMs };
    }
    return verdict.kind === 'paid'
      ? { kind: 'accepted', txhash: verdict.txhash, durationMs }
      : { kind: 'rejected', message: verdict.message, durationMs };
  }

  #delayMs(typical: number, longest: number): number {
    return this.#options.process.world.random.heavyTail(typical, longest);
  }

  /** The assumption on which the pace rests: written bytes arrive within `inFlightMaxMs`, or never. */
  #arrivalMs(): number {
    const { process, plan } = this.#options;
    const { world } = process;
    const { inFlightMaxMs } = plan.settings;
    if (!world.fault(plan.faults.arrivesLate)) return this.#delayMs(1, Math.min(300, inFlightMaxMs));
    if (world.random.chance(0.4)) return inFlightMaxMs;
    return Math.min(inFlightMaxMs, nearBoundary(world.random, plan.settings));
  }
}
