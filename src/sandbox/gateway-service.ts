import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import type { CallContext, Dialect, SandboxCall, Settlement } from './dialect.js';
import type { EndpointName } from './endpoint-name.js';
import { BLOCKED_MESSAGE, FaultPlan, refusalOf, spoil, type FaultStrike } from './fault-plan.js';
import { createRandom, drawDelayMs, type Random } from './latency.js';
import { readBody } from './read-body.js';
import { failed, sendResponse, sendTruncatedResponse, succeeded, type SandboxResponse } from './response.js';
import { AccountRegistry, type SandboxAccount } from './sandbox-account.js';
import type { SandboxSettings } from './sandbox-options.js';

class PauseGate {
  #opened: { promise: Promise<void>; open: () => void } | undefined;

  shut(): void {
    if (this.#opened !== undefined) return;
    let open = (): void => undefined;
    const promise = new Promise<void>((resolve) => (open = resolve));
    this.#opened = { promise, open };
  }

  open(): void {
    this.#opened?.open();
    this.#opened = undefined;
  }

  get isShut(): boolean {
    return this.#opened !== undefined;
  }

  async pass(): Promise<void> {
    // The gate may have been shut again.
    while (this.#opened !== undefined) await this.#opened.promise;
  }
}

interface ServedCall {
  readonly dialect: Dialect;
  readonly endpoint: EndpointName;
  readonly call: SandboxCall;
}

/** Takes a call through the stages of a real gateway: wire, signature, limit, processing, wire. */
export class GatewayService {
  readonly accounts: AccountRegistry;
  readonly faults: FaultPlan;
  readonly gate = new PauseGate();
  readonly #settings: SandboxSettings;
  readonly #random: Random;
  readonly #settlement: Settlement;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #closing = new AbortController();

  constructor(settings: SandboxSettings, clock: Clock, logger: Logger) {
    const random = createRandom(settings.seed);
    this.accounts = new AccountRegistry(settings);
    this.faults = new FaultPlan(random, settings.faults);
    this.#settings = settings;
    this.#random = random;
    this.#settlement = createSettlement(settings, random);
    this.#clock = clock;
    this.#logger = logger;
    // Each waiting request listens to it.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Calls on their way then never arrive. */
  close(): void {
    this.#closing.abort();
    this.gate.open();
  }

  async serve(
    dialect: Dialect,
    endpoint: EndpointName,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const misuse = findMisuse(dialect, request);
    if (misuse !== undefined) {
      request.resume();
      sendResponse(request, response, misuse);
      return;
    }
    const body = await readBody(request);
    // The caller closed the connection within the body, so the call never arrives.
    if (body === 'incomplete') return;
    if (body === 'too_large') {
      sendResponse(request, response, failed('the body is too large', 413));
      return;
    }
    const call = dialect.parse(endpoint, body, request.headers);
    if (call === undefined) {
      sendResponse(request, response, failed(dialect.malformed));
      return;
    }
    await this.#serveCall({ dialect, endpoint, call }, request, response);
  }

  async #serveCall(served: ServedCall, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { latencyBeforeMs, latencyAfterMs } = this.#settings;
    const { endpoint, call } = served;
    const strike = this.#strike(served);
    // From here on the call is on its way: as on a real network, it arrives even if its sender gives up.
    await this.#sleep(drawDelayMs(latencyBeforeMs, this.#random) + strike.latencyBeforeMs);
    if (this.#isClosed() || strike.fault?.kind === 'hang-before') return;
    if (strike.fault?.kind === 'drop-before') {
      request.socket.destroy();
      return;
    }
    const result = this.#process(served, strike.fault);
    this.#logger.debug(
      { endpoint, platformId: call.platformId, faults: strike.kinds, status: result.status },
      'call processed',
    );
    await this.#sleep(drawDelayMs(latencyAfterMs, this.#random) + strike.latencyAfterMs);
    await this.gate.pass();
    if (this.#isClosed() || strike.fault?.kind === 'hang') return;
    if (strike.fault?.kind === 'drop-after') request.socket.destroy();
    else if (strike.fault?.kind === 'truncated') sendTruncatedResponse(request, response, result);
    else sendResponse(request, response, spoil(strike.fault, result));
  }

  #strike({ endpoint, call }: ServedCall): FaultStrike {
    const { platformId } = call;
    const account = this.accounts.find(platformId);
    const payment = call.payment && account?.payments.find(call.payment);
    const addressTo = call.addressTo ?? payment?.addressTo;
    const strike = this.faults.strike({ endpoint, platformId, addressTo });
    account?.countCall(endpoint, strike.kinds);
    return strike;
  }

  /** Synchronous from arrival to response, so nothing comes between stamp and verdict. */
  #process({ dialect, endpoint, call }: ServedCall, fault: FaultStrike['fault']): SandboxResponse {
    const nowMs = this.#clock.now();
    const account = this.accounts.find(call.platformId);
    if (account === undefined) return dialect.failed(endpoint, dialect.unknownPlatform);
    if (!account.isSignerOf(call)) return dialect.failed(endpoint, 'wrong signature');
    if (endpoint === 'withdraw') this.#stamp(account, call, nowMs);
    if (account.isBlocked) return dialect.failed(endpoint, BLOCKED_MESSAGE);
    const refusal = refusalOf(fault, dialect.paths[endpoint]);
    if (refusal !== undefined) return refusal;
    const context: CallContext = { account, nowMs, settlement: this.#settlement };
    const answer = call.handle(context);
    return typeof answer === 'string' ? dialect.failed(endpoint, answer) : succeeded(answer);
  }

  /**
   * Every withdrawal that its account signed counts for the limit, in either dialect, even if it is refused for another
   * reason.
   */
  #stamp(account: SandboxAccount, { addressTo, amount }: SandboxCall, nowMs: number): void {
    if (!account.arrive(nowMs, { addressTo: addressTo ?? null, amount: amount ?? null })) return;
    const { platformId, blockedReason } = account.stats();
    this.#logger.warn({ platformId, blockedReason }, 'account blocked');
  }

  #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #sleep(ms: number): Promise<void> {
    if (ms > 0) await this.#clock.sleep(ms, this.#closing.signal);
  }
}

function createSettlement({ failAddresses, failShare, settleAfterMs }: SandboxSettings, random: Random): Settlement {
  const failing = new Set(failAddresses);
  return { settleAfterMs, fails: (addressTo) => failing.has(addressTo) || random() < failShare };
}

/** Finds a method or content type that the API does not name. */
function findMisuse({ contentType }: Dialect, request: IncomingMessage): SandboxResponse | undefined {
  if (request.method !== 'POST') return { ...failed('method not allowed: use POST', 405), headers: { allow: 'POST' } };
  const [given = ''] = (request.headers['content-type'] ?? '').split(';');
  if (given.trim().toLowerCase() === contentType) return undefined;
  return failed(`unsupported content type: use ${contentType}`, 415);
}
