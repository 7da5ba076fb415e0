import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import { findFieldProblem, type EndpointName } from './endpoint.js';
import { BLOCKED_MESSAGE, FaultPlan, refusalOf, spoil, type FaultStrike } from './fault-plan.js';
import { handleCall, type Settlement } from './handle-call.js';
import { createRandom, drawDelayMs, type Random } from './latency.js';
import { failed, sendResponse, sendTruncatedResponse, type SandboxResponse } from './response.js';
import { AccountRegistry, type SandboxAccount } from './sandbox-account.js';
import type { SandboxSettings } from './sandbox-options.js';
import { parseSignedForm, readBody, type SignedForm } from './signed-form.js';

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

  async serve(endpoint: EndpointName, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const misuse = findMisuse(request);
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
    const form = parseSignedForm(body);
    if (form === undefined) {
      sendResponse(request, response, failed('the body is no valid form'));
      return;
    }
    await this.#serveForm(endpoint, form, request, response);
  }

  async #serveForm(
    endpoint: EndpointName,
    form: SignedForm,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { latencyBeforeMs, latencyAfterMs } = this.#settings;
    const strike = this.#strike(endpoint, form);
    // From here on the call is on its way: as on a real network, it arrives even if its sender gives up.
    await this.#sleep(drawDelayMs(latencyBeforeMs, this.#random) + strike.latencyBeforeMs);
    if (this.#isClosed() || strike.fault?.kind === 'hang-before') return;
    if (strike.fault?.kind === 'drop-before') {
      request.socket.destroy();
      return;
    }
    const result = this.#process(endpoint, form, strike.fault);
    this.#logger.debug(
      { endpoint, platformId: form.platformId, faults: strike.kinds, status: result.status },
      'call processed',
    );
    await this.#sleep(drawDelayMs(latencyAfterMs, this.#random) + strike.latencyAfterMs);
    await this.gate.pass();
    if (this.#isClosed() || strike.fault?.kind === 'hang') return;
    if (strike.fault?.kind === 'drop-after') request.socket.destroy();
    else if (strike.fault?.kind === 'truncated') sendTruncatedResponse(request, response, result);
    else sendResponse(request, response, spoil(strike.fault, result));
  }

  #strike(endpoint: EndpointName, form: SignedForm): FaultStrike {
    const account = this.accounts.find(form.platformId);
    const txhash = fieldOf(form, 'txhash');
    const payment = txhash === undefined ? undefined : account?.payments.find(txhash);
    const addressTo = fieldOf(form, 'address_to') ?? payment?.addressTo;
    const strike = this.faults.strike({ endpoint, platformId: form.platformId, addressTo });
    account?.countCall(endpoint, strike.kinds);
    return strike;
  }

  /** Synchronous from arrival to response, so nothing comes between stamp and verdict. */
  #process(endpoint: EndpointName, form: SignedForm, fault: FaultStrike['fault']): SandboxResponse {
    const nowMs = this.#clock.now();
    const account = this.accounts.find(form.platformId);
    if (account === undefined) return failed('unknown platform_id');
    if (!account.isSignerOf(form)) return failed('wrong signature');
    if (endpoint === 'withdraw') this.#stamp(account, form, nowMs);
    if (account.isBlocked) return failed(BLOCKED_MESSAGE);
    const problem = findFieldProblem(
      endpoint,
      form.fields.map(([name]) => name),
    );
    if (problem !== undefined) return failed(problem);
    const fields = Object.fromEntries(form.fields);
    return refusalOf(fault, endpoint) ?? handleCall(endpoint, { account, fields, nowMs, settlement: this.#settlement });
  }

  /** Every withdrawal that its account signed counts for the limit, even if it is refused for another reason. */
  #stamp(account: SandboxAccount, form: SignedForm, nowMs: number): void {
    const nowBlocked = account.arrive(nowMs, {
      addressTo: fieldOf(form, 'address_to') ?? null,
      amount: fieldOf(form, 'amount') ?? null,
    });
    if (!nowBlocked) return;
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

/** Finds a method or content type that docs/gateway-api.md#calls does not name. */
function findMisuse(request: IncomingMessage): SandboxResponse | undefined {
  if (request.method !== 'POST') return { ...failed('method not allowed: use POST', 405), headers: { allow: 'POST' } };
  const contentType = request.headers['content-type'] ?? '';
  if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType)) return undefined;
  return failed('unsupported content type: use application/x-www-form-urlencoded', 415);
}

function fieldOf(form: SignedForm, name: string): string | undefined {
  return form.fields.find(([field]) => field === name)?.[1];
}
