import { ConflictError, RedisUnavailableError } from '../../src/base/errors.js';
import {
  type FoundPayment,
  GatewayUnavailableError,
  type PaymentNames,
  type WithdrawGateway,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../../src/gateway/gateway.js';
import { classifyStop } from '../../src/gateway/stop-sign.js';
import type { Payout } from '../../src/ledger/payout.js';
import type { LookUpLedger } from '../../src/ledger/order-look-ups.js';
import type { SenderLedger } from '../../src/ledger/sender-ledger.js';
import type { FaultInjector } from '../proofs/simulation/faults.js';
import { nearBoundary, type Plan } from '../proofs/simulation/plan.js';
import type { Attacker } from '../proofs/simulation/signed/attacker.js';
import { FIRST_API } from './dialect.js';
import { type About, never, once, type World, type WorldProcess } from './world.js';

const LIMIT_MS = 1_000;

type Verdict = ({ readonly kind: 'accepted' } & PaymentNames) | Readonly<{ kind: 'rejected'; message: string }>;

export type GatewayBook = ReturnType<typeof openGateway>;

/** What the gateway really paid, and when. It may stand still: its kernel then keeps for it what arrives. */
export function openGateway(
  world: World,
  mayBreak: (promise: 'pace' | 'once') => boolean = () => false,
  watcher?: { paid(request: WithdrawRequest): void },
  dialect = FIRST_API,
) {
  const payments = new Map<string, string>();
  const orders = new Map<string, FoundPayment | undefined>();
  let last: Readonly<{ at: number; wallet: string }> | undefined;
  const hasOrderIds = dialect.api === 'v2';
  let standsStillUntil = 0;
  const book = {
    dialect,
    arrivals: 0,
    paymentTo: (wallet: string) => payments.get(wallet),

    /** The payment that was asked for with an order id, as the gateway shows it. */
    findPayment: (orderId: string) => (dialect.knowsOrderIds ? orders.get(orderId) : undefined),

    get isStandingStill() {
      return world.now < standsStillUntil;
    },

    standStill(forMs: number) {
      world.note(() => `gateway: stands still for ${forMs.toFixed(1)}`);
      world.situations?.meet('a gateway stands still');
      standsStillUntil = world.now + forMs;
    },

    /** Reads what has arrived, in its order, as soon as it does not stand still. */
    read(run: () => unknown, about: About) {
      if (book.isStandingStill) world.after(standsStillUntil - world.now, () => run(), about);
      else run();
    },

    arrive(request: WithdrawRequest, orderId: string, rejects: boolean): Verdict {
      const { addressTo: wallet } = request;
      const { now } = world;
      world.note(() => `gateway: ${wallet} arrives, ${rejects ? 'rejected' : 'PAID'}`);
      book.arrivals += 1;
      if (last !== undefined && now - last.at < LIMIT_MS - 1e-6 && !mayBreak('pace')) {
        world.fail(`too fast: ${wallet} arrived ${(now - last.at).toFixed(3)} ms after ${last.wallet}`);
      }
      last = { at: now, wallet };
      if (payments.has(wallet) && !rejects && !mayBreak('once')) world.fail(`twice: ${wallet} was paid before`);
      if (hasOrderIds && orders.has(orderId)) world.fail(`named twice: ${wallet} was sent as ${orderId}, and another`);
      const other = { ...request, amount: `1${request.amount}` };
      const mistaken: FoundPayment = { kind: 'paid', gatewayId: `other-${book.arrivals}`, ...other };
      if (hasOrderIds) orders.set(orderId, dialect.isMistaken ? mistaken : undefined);
      if (rejects) return { kind: 'rejected', message: 'not enough balance' };
      watcher?.paid(request);
      const gatewayId = `${hasOrderIds ? 'id' : 'tx'}-${book.arrivals}`;
      payments.set(wallet, gatewayId);
      if (!hasOrderIds) return { kind: 'accepted', gatewayId, txhash: gatewayId };
      const payment: FoundPayment = { kind: 'pending', ...(dialect.statusNamesPayment && { gatewayId }), ...request };
      if (!dialect.isMistaken) orders.set(orderId, payment);
      return { kind: 'accepted', gatewayId };
    },
  };
  return book;
}

/** What becomes of a withdrawal; with `unheard` it is paid, and no response comes. */
export type Fate = 'paid' | 'rejected' | 'unheard' | 'never arrives';

type LinkOptions = Readonly<{
  process: WorldProcess;
  book: GatewayBook;
  plan: Pick<Plan, 'settings' | 'faults'>;
  injector?: FaultInjector | undefined;
  watchers?: readonly { written(process: WorldProcess, request: WithdrawRequest): void }[];
  lingerMs?: number;
  drawFate?: (() => Fate) | undefined;
  /** A closed socket leaves what its kernel has to that kernel. */
  closesOnly?: boolean;
}>;

interface Connection {
  reset: (reason: string) => void;
  drop: () => void;
}

export function linkGateway({
  process,
  book,
  plan,
  injector,
  watchers = [],
  ...options
}: LinkOptions): WithdrawGateway {
  const { world } = process;
  const { random, situations } = world;
  const { faults, settings } = plan;
  const { inFlightMaxMs, resendsForMs, withdrawTimeoutMs } = settings;

  /** The assumption of the network: what has left a host arrives within `inFlightMaxMs`, or never. */
  const arrivalMs = () => {
    if (!world.fault(faults.arrivesLate)) return random.heavyTail(1, Math.min(300, inFlightMaxMs));
    return random.chance(0.4) ? inFlightMaxMs : Math.min(inFlightMaxMs, nearBoundary(random, settings));
  };

  /** The assumption of the kernel: it sends again what it wrote for `resendsForMs`, unless the socket is reset. */
  const staysForMs = () => {
    if (!world.fault(faults.staysInKernel)) return 0;
    return random.chance(0.4) ? resendsForMs : random.between(0, resendsForMs);
  };

  const write = (
    request: WithdrawRequest,
    orderId: string,
    connection: Connection,
    resolve: (outcome: WithdrawOutcome) => void,
  ) => {
    const label = request.addressTo;
    const startedAt = process.now();
    const durationMs = () => process.now() - startedAt;
    const lose = (reason: string) => () => {
      connection.drop();
      resolve({ kind: 'unknown', reason, durationMs: durationMs() });
    };
    connection.reset = (reason) => {
      lose(reason)();
    };
    world.note(() => `${process.name} WRITES ${label}`);
    for (const watcher of watchers) watcher.written(process, request);
    const attempt = world.actions?.written(process.name) ?? 0;
    situations?.written(process.name, resendsForMs + inFlightMaxMs);
    const fate = options.drawFate?.();
    const { lingerMs } = options;

    const onTrouble = once(() => {
      const about = { kind: 'timeout', label: `withdraw of ${label} without a response` } as const;
      process.afterOwn(withdrawTimeoutMs - durationMs(), lose('no whole response in time'), about);
    });
    const isUnheard = (lingerMs ?? 0) >= withdrawTimeoutMs || fate === 'unheard' || fate === 'never arrives';
    if (world.isByChance || isUnheard) onTrouble();
    if (world.fault(faults.cut)) process.after(random.heavyTail(1, 200), lose('reset'));
    if (fate === 'never arrives' || world.fault(faults.requestLost)) world.actions?.reached('lost', attempt);
    else {
      const about = { label, process, onTrouble };
      const arrive = () => {
        situations?.arrived(process.name);
        if (world.fault(faults.gatewayStandsStill)) book.standStill(nearBoundary(random, settings));
        book.read(read, about);
      };
      const read = () => {
        const verdict = book.arrive(request, orderId, fate === 'rejected' || world.fault(faults.rejected));
        if (verdict.kind === 'rejected') world.actions?.end('the gateway rejects a payout');
        world.actions?.reached('arrived', attempt);
        injector?.strike(process, 'response', 'withdraw');
        if (fate === 'unheard' || world.fault(faults.responseLost)) return;
        const responseMs = world.fault(faults.responseLate) ? nearBoundary(random, settings) : random.heavyTail(1, 500);
        const hear = () => {
          if (world.fault(faults.responseUnclear)) lose('HTTP 502 with a page of HTML')();
          else resolve({ ...verdict, durationMs: durationMs() });
        };
        process.after(responseMs, hear, { ...about, kind: 'response' });
      };
      const leave = () => {
        const at = { kind: 'arrival', deadline: world.now + inFlightMaxMs } as const;
        world.after(lingerMs ?? arrivalMs(), arrive, { ...about, ...at });
      };
      const stayMs = staysForMs();
      if (stayMs === 0) leave();
      else {
        situations?.meet('a request stays in the kernel of its host');
        let isDropped = false;
        let hasLeft = false;
        world.after(stayMs, () => {
          hasLeft = !isDropped;
          if (hasLeft) leave();
        });
        connection.drop = () => {
          if (options.closesOnly === true) return;
          if (!isDropped && !hasLeft) world.actions?.reached('lost', attempt);
          isDropped = true;
        };
      }
    }
    injector?.strike(process, 'after the write', 'withdraw');
  };

  return {
    classifyStop,

    async openConnection(signal) {
      const connectMs = world.fault(0.05) ? nearBoundary(random, settings) : random.between(0.5, 5);
      await process.takeMs(connectMs, 'connect');
      if (signal.aborted) throw new GatewayUnavailableError('aborted');
      if (world.fault(faults.connectFails)) throw new GatewayUnavailableError('connection refused');
      const endsAt = world.fault(faults.connectionEnds) ? world.now + random.between(0, 1_500) : Infinity;
      const connection: Connection = { reset: () => undefined, drop: () => undefined };
      return {
        resendsForMs,
        reset(reason) {
          connection.reset(reason);
        },
        get usable() {
          return world.now < endsAt;
        },
        async withdraw(request, { mayWrite, orderId = '' }) {
          // The real connection looks at what has reached the machine before it asks: a process may be stopped there.
          injector?.strike(process, 'before the write', 'withdraw');
          await process.takeMs(0.01, request.addressTo, 'write');
          if (world.now >= endsAt || !mayWrite()) return { kind: 'not_sent', reason: 'not allowed any more' };
          return new Promise((resolve) => {
            write(request, orderId, connection, resolve);
          });
        },
        close: () => undefined,
      };
    },

    async probe(signal) {
      // It changes nothing at the gateway: a schedule need not deviate from it.
      if (!world.isByChance) return;
      situations?.meet('a gateway is probed');
      await process.takeMs(random.heavyTail(1, 250));
      const isAnswered = await new Promise<boolean>((resolve) => {
        if (world.fault(faults.responseLost)) resolve(false);
        process.afterOwn(withdrawTimeoutMs, () => {
          resolve(false);
        });
        const answer = () =>
          process.after(random.heavyTail(0, 250), () => {
            resolve(true);
          });
        book.read(answer, { label: 'probe', process });
      });
      if (signal.aborted) throw new GatewayUnavailableError('aborted');
      if (!isAnswered) throw new GatewayUnavailableError('no response to a probe');
    },
  };
}

export type LinkedRedis = Readonly<{
  generation: number;
  refuses: boolean;
  isUp: boolean;
  take(run: () => Promise<void>): unknown;
  before(name: string): void;
  executed(process: WorldProcess, name: string, about: string): void;
}>;

export const ALWAYS_UP: LinkedRedis = {
  ...{ generation: 0, refuses: false, isUp: true },
  take: async (run) => run(),
  before: () => undefined,
  executed: () => undefined,
};

type LedgerLinkOptions = Readonly<{
  process: WorldProcess;
  redis: LinkedRedis;
  plan: Pick<Plan, 'settings' | 'faults'>;
  injector?: FaultInjector | undefined;
  onBegin?: () => void;
  attacker?: Pick<Attacker, 'forge' | 'hasStruck'> | undefined;
}>;

export type LedgerCall = <Reply>(name: string, about: string, run: () => Promise<Reply>) => Promise<Reply>;

/** What the worker asks: the sender's calls, and which payouts wait (in production BullMQ knows that). */
export interface WorkerLedger extends SenderLedger {
  queued(): Promise<readonly string[]>;
}

/** What a call is about, for the trace. */
type Abouts<Port> = {
  readonly [Name in keyof Port]: Port[Name] extends (...args: infer Args) => unknown
    ? (...args: Args) => string
    : never;
};

const CALLS: Abouts<SenderLedger> = {
  readSender: () => '',
  acquireLease: (owner) => owner,
  renewLease: ({ owner }) => owner,
  releaseLease: ({ owner }) => owner,
  readPayout: (payoutId) => payoutId,
  findForgottenSends: () => '',
  beginSend: ({ payoutId, attempt }) => `${payoutId} ${attempt}`,
  holdPayout: (payoutId, _, { reason }) => `${payoutId} ${reason}`,
  findSignedBefore: () => '',
  readSpends: () => '',
  revertSend: ({ payoutId, attempt }) => `${payoutId} ${attempt}`,
  finishSend: ({ payoutId, attempt }, { kind }) => `${payoutId} ${attempt} ${kind}`,
  readSending: () => '',
  markSendsUnknown: (_, attempts) => attempts.map(({ payoutId }) => payoutId).join(' '),
  removeSendingEntries: (_, payoutIds) => payoutIds.join(' '),
  readUnkept: () => '',
  noteKept: (_, payoutIds) => payoutIds.join(' '),
  object: ({ reason }) => reason,
};

export function linkLedger(ledger: SenderLedger, call: LedgerCall): SenderLedger {
  return linkCalls(ledger, CALLS, call);
}

function linkCalls<Port extends object>(ledger: Port, abouts: Abouts<Port>, call: LedgerCall): Port {
  const link = ([name, about]: [string, unknown]): [string, unknown] => {
    const run = (...args: never[]) => (ledger[name as keyof Port] as (...given: never[]) => Promise<unknown>)(...args);
    const describe = about as (...args: never[]) => string;
    return [name, async (...args: never[]) => call(name, describe(...args), async () => run(...args))];
  };
  return Object.fromEntries(Object.entries(abouts).map(link)) as unknown as Port;
}

const LOOK_UP_CALLS: Abouts<LookUpLedger> = {
  readAudience: () => '',
  lineUp: String,
  readDue: () => '',
  readPayout: (payoutId) => payoutId,
  readAttempts: (payoutId) => payoutId,
  drop: (payoutId) => payoutId,
  postpone: (payoutId) => payoutId,
  note: ({ payoutId, attempt }, { answer }) => `${payoutId} ${attempt} ${answer}`,
  recordFound: ({ payoutId, attempt }, { gatewayId }) => `${payoutId} ${attempt} ${gatewayId}`,
};

export function linkLookUpLedger(lookUps: LookUpLedger, call: LedgerCall): LookUpLedger {
  return linkCalls(lookUps, LOOK_UP_CALLS, call);
}

const QUIET: ReadonlySet<string> = new Set([
  ...['readSender', 'renewLease', 'queued', 'readPayout', 'findForgottenSends', 'readSending', 'held', 'marked'],
  ...['readAudience', 'lineUp', 'readDue', 'readAttempts', 'drop', 'postpone', 'note'],
]);

export function isQuiet(name: string) {
  return QUIET.has(name);
}

/** A command that lingers in the network longer than this never reaches Redis: its connection is closed by then. */
const LINGERS_MAX_MS = 20_000;

/** A process's connection to Redis: commands and replies are late or lost, and may overtake each other. */
export function connectLedger({ process, redis, plan, injector, onBegin, attacker }: LedgerLinkOptions): LedgerCall {
  const { world } = process;
  const { settings, faults } = plan;

  return async <Reply>(name: string, about: string, run: () => Promise<Reply>): Promise<Reply> => {
    const isHit = (probability: number) => world.fault(isQuiet(name) ? probability / 10 : probability);
    const delayMs = () =>
      isHit(faults.ledgerSlow)
        ? Math.min(LINGERS_MAX_MS, nearBoundary(world.random, settings))
        : world.random.between(0.1, 1);
    const askedAt = process.now();
    const { generation } = redis;
    if (process.isDead) return never();

    return new Promise((resolve, reject) => {
      const fail = (reason: string) => () => {
        reject(new RedisUnavailableError(reason));
      };
      const watch = once(() => {
        const about = { kind: 'timeout', label: `${name} without a reply` } as const;
        process.afterOwn(settings.commandTimeoutMs - (process.now() - askedAt), fail('no reply in time'), about);
      });
      const step = { label: name, process, onTrouble: watch };

      let begun: (() => void) | undefined;
      if (name === 'beginSend') {
        begun = world.actions?.asked(process.name, about.split(' ')[0] ?? '');
        onBegin?.();
      }
      injector?.strike(process, 'asked', name);
      if (process.isDead) return;
      if (redis.refuses) {
        process.after(1, fail('connection refused'));
        return;
      }
      const requestMs = delayMs();
      const replyMs = delayMs();
      const isLost = isHit(faults.ledgerRequestLost);
      const isReplyLost = isHit(faults.ledgerReplyLost);
      if (isLost || isReplyLost || requestMs + replyMs > settings.commandTimeoutMs / 2) watch();
      if (isLost) return;

      const execute = async () => {
        if (!isQuiet(name)) world.note(() => `${process.name} ${name} ${about}`);
        world.actions?.look();
        redis.before(name);
        const reply = run();
        await reply.catch((error: unknown) => {
          if (error instanceof ConflictError || attacker?.hasStruck === true) return;
          world.fail(`${name} failed: ${(error as Error).message}`);
        });
        begun?.();
        world.actions?.executed(process.name, name, about);
        redis.executed(process, name, about);
        const isForged = attacker !== undefined && name === 'readPayout';
        const heard = isForged ? reply.then((payout) => attacker.forge(payout as Payout) as Reply) : reply;
        heard.catch(() => undefined);
        if (isReplyLost) return;
        const deliver = () => {
          // After a stop, Node looks at its timers before it looks at its sockets, or the other way round.
          const isLate = process.now() - askedAt >= settings.commandTimeoutMs;
          if (isLate && world.random.chance(0.5)) fail('no reply in time')();
          else resolve(heard);
        };
        process.after(replyMs, deliver, { ...step, kind: 'reply' });
      };
      const arrive = () => {
        if (redis.generation !== generation || !redis.isUp) watch();
        return redis.generation !== generation || redis.refuses ? undefined : redis.take(execute);
      };
      world.after(requestMs, arrive, { ...step, kind: 'command', deadline: world.now + LINGERS_MAX_MS });
    });
  };
}
