import {
  GatewayUnavailableError,
  type WithdrawConnection,
  type WithdrawGateway,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../../src/gateway/gateway.js';
import type { FaultInjector } from '../proofs/simulation/faults.js';
import { nearBoundary, type Plan } from '../proofs/simulation/plan.js';
import { once, type World, type WorldProcess } from './world.js';

const LIMIT_MS = 1_000;

type Verdict = Readonly<{ kind: 'paid'; txhash: string }> | Readonly<{ kind: 'rejected'; message: string }>;

/** The gateway: stamps arrivals on true time and keeps the book of what it really paid. */
export class GatewayBook {
  readonly #world: World;
  readonly #mayBreak: (promise: 'pace' | 'once') => boolean;
  readonly #watcher: { paid(request: WithdrawRequest): void } | undefined;
  #last: Readonly<{ at: number; wallet: string }> | undefined;
  readonly #payments = new Map<string, string>();
  arrivals = 0;

  constructor(
    world: World,
    mayBreak: (promise: 'pace' | 'once') => boolean = () => false,
    watcher?: { paid(request: WithdrawRequest): void },
  ) {
    this.#world = world;
    this.#mayBreak = mayBreak;
    this.#watcher = watcher;
  }

  paymentTo(wallet: string): string | undefined {
    return this.#payments.get(wallet);
  }

  arrive(request: WithdrawRequest, rejects: boolean): Verdict {
    const { addressTo: wallet } = request;
    const { now } = this.#world;
    this.#world.note(() => `gateway: ${wallet} arrives, ${rejects ? 'rejected' : 'PAID'}`);
    this.arrivals += 1;
    const last = this.#last;
    if (last !== undefined && now - last.at < LIMIT_MS - 1e-6 && !this.#mayBreak('pace')) {
      this.#world.fail(`too fast: ${wallet} arrived ${(now - last.at).toFixed(3)} ms after ${last.wallet}`);
    }
    this.#last = { at: now, wallet };
    if (rejects) return { kind: 'rejected', message: 'not enough balance' };
    if (this.#payments.has(wallet) && !this.#mayBreak('once')) this.#world.fail(`twice: ${wallet} was paid before`);
    this.#watcher?.paid(request);
    const txhash = `tx-${this.arrivals}`;
    this.#payments.set(wallet, txhash);
    return { kind: 'paid', txhash };
  }
}

export type Fate = 'paid' | 'rejected' | 'unheard' | 'never arrives';

type GatewayLinkOptions = Readonly<{
  process: WorldProcess;
  book: GatewayBook;
  plan: Pick<Plan, 'settings' | 'faults'>;
  injector?: FaultInjector | undefined;
  watchers?: readonly { written(process: WorldProcess, request: WithdrawRequest): void }[];
  lingerMs?: number;
  drawFate?: (() => Fate) | undefined;
}>;

/** A process's way to the gateway: requests arrive late but within `inFlightMaxMs`, or never; responses are lost or unclear. */
export class GatewayLink implements WithdrawGateway {
  readonly #options: GatewayLinkOptions;

  constructor(options: GatewayLinkOptions) {
    this.#options = options;
  }

  async openConnection(signal: AbortSignal): Promise<WithdrawConnection> {
    const { process, plan } = this.#options;
    const { world } = process;
    const isSlow = world.fault(0.05);
    await process.takeMs(isSlow ? nearBoundary(world.random, plan.settings) : world.random.between(0.5, 5), 'connect');
    if (signal.aborted) throw new GatewayUnavailableError('aborted');
    if (world.fault(plan.faults.connectFails)) throw new GatewayUnavailableError('connection refused');
    const endsAt = world.fault(plan.faults.connectionEnds) ? world.now + world.random.between(0, 1_500) : Infinity;
    const isUsable = () => world.now < endsAt;
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
    // It changes nothing at the gateway: a schedule need not deviate from it.
    if (!world.isByChance) return;
    world.situations?.meet('a gateway is probed');
    await process.takeMs(world.random.heavyTail(1, 500));
    if (signal.aborted) throw new GatewayUnavailableError('aborted');
    if (world.fault(plan.faults.responseLost)) throw new GatewayUnavailableError('no response to a probe');
  }

  async #withdraw(request: WithdrawRequest, mayWrite: () => boolean): Promise<WithdrawOutcome> {
    const { process, injector } = this.#options;
    // The real connection looks at what has reached the machine before it asks: a process may be stopped there.
    injector?.strike(process, 'before the write', 'withdraw');
    await process.takeMs(0.01, request.addressTo, 'write');
    if (!mayWrite()) return { kind: 'not_sent', reason: 'not allowed any more' };
    return new Promise((resolve) => {
      this.#write(request, resolve);
    });
  }

  #write(request: WithdrawRequest, resolve: (outcome: WithdrawOutcome) => void) {
    const { process, plan, injector, watchers = [], lingerMs, drawFate } = this.#options;
    const { world } = process;
    const { faults, settings } = plan;
    const label = request.addressTo;
    const startedAt = process.now();
    const durationMs = () => process.now() - startedAt;
    const lose = (reason: string) => () => {
      resolve({ kind: 'unknown', reason, durationMs: durationMs() });
    };
    world.note(() => `${process.name} WRITES ${label}`);
    for (const watcher of watchers) watcher.written(process, request);
    world.situations?.written(process.name, settings.inFlightMaxMs);
    const fate = drawFate?.();

    const onTrouble = once(() => {
      const about = { kind: 'timeout', label: `withdraw of ${label} without a response` } as const;
      process.afterOwn(settings.withdrawTimeoutMs - durationMs(), lose('no whole response in time'), about);
    });
    const isUnheard = (lingerMs ?? 0) >= settings.withdrawTimeoutMs || fate === 'unheard' || fate === 'never arrives';
    if (world.isByChance || isUnheard) onTrouble();
    if (world.fault(faults.cut)) process.after(world.random.heavyTail(1, 200), lose('reset'));
    if (fate !== 'never arrives' && !world.fault(faults.requestLost)) {
      const about = { label, process, onTrouble };
      const arrive = () => {
        const verdict = this.#arrive(request, fate);
        if (verdict === undefined) return;
        const hear = () => {
          resolve(this.#read(verdict, durationMs()));
        };
        process.after(this.#responseMs(), hear, { ...about, kind: 'response' });
      };
      const deadline = world.now + settings.inFlightMaxMs;
      world.after(lingerMs ?? this.#arrivalMs(), arrive, { ...about, kind: 'arrival', deadline });
    }
    injector?.strike(process, 'after the write', 'withdraw');
  }

  #arrive(request: WithdrawRequest, fate: Fate | undefined): Verdict | undefined {
    const { process, book, plan, injector } = this.#options;
    const { world } = process;
    world.situations?.arrived(process.name);
    const verdict = book.arrive(request, fate === 'rejected' || world.fault(plan.faults.rejected));
    injector?.strike(process, 'response', 'withdraw');
    return fate === 'unheard' || world.fault(plan.faults.responseLost) ? undefined : verdict;
  }

  #responseMs() {
    const { process, plan } = this.#options;
    const { random } = process.world;
    return process.world.fault(plan.faults.responseLate)
      ? nearBoundary(random, plan.settings)
      : random.heavyTail(1, 500);
  }

  #read(verdict: Verdict, durationMs: number): WithdrawOutcome {
    const { process, plan } = this.#options;
    if (process.world.fault(plan.faults.responseUnclear)) {
      return { kind: 'unknown', reason: 'HTTP 502 with a page of HTML', durationMs };
    }
    return verdict.kind === 'paid'
      ? { kind: 'accepted', txhash: verdict.txhash, durationMs }
      : { kind: 'rejected', message: verdict.message, durationMs };
  }

  /** The assumption on which the pace rests: written bytes arrive within `inFlightMaxMs`, or never. */
  #arrivalMs() {
    const { process, plan } = this.#options;
    const { world } = process;
    const { inFlightMaxMs } = plan.settings;
    if (!world.fault(plan.faults.arrivesLate)) return world.random.heavyTail(1, Math.min(300, inFlightMaxMs));
    if (world.random.chance(0.4)) return inFlightMaxMs;
    return Math.min(inFlightMaxMs, nearBoundary(world.random, plan.settings));
  }
}
