import { z } from 'zod';
import { within } from '../base/clock.js';
import { errorCode } from '../base/errors.js';
import { gatewayIdField, txhashField } from '../base/fields.js';
import type { OptionRule } from '../base/setting.js';
import { CONNECT_WITHIN_MS } from '../base/settings.js';
import {
  describeFailure,
  type EventMessage,
  type EventReading,
  type FoundPayment,
  type Gateway,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
  type OwnGateway,
  type PaymentDifference,
  type PaymentStatus,
  type WithdrawConnection,
  type WithdrawOutcome,
} from './gateway.js';

/** A gateway that a program gives: checked once, then believed in nothing that could pay twice. */

const METHODS = [
  ...['openConnection', 'probe', 'classifyStop', 'getStatus', 'comparePayment'],
  ...['readCurrencies', 'readBalances', 'close'],
] as const;

const OPTIONAL_METHODS = ['findPayment', 'getPaymentWallet', 'readEvent'] as const;

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const LONGEST_GAP_MS = 3_600_000;

/** What an object must have to be an {@link OwnGateway}. A value that may be a secret is not shown. */
export const ownGatewayRule: OptionRule = {
  rule: z.unknown().superRefine((value, context) => {
    for (const message of findFaults(value)) context.addIssue({ code: 'custom', message });
  }),
  hidden: true,
};

/** @returns what is wrong with an object that must be an {@link OwnGateway} */
export function findFaults(value: unknown): string[] {
  if (Object(value) !== value) return [`must be an object of the interface OwnGateway (got ${nameType(value)})`];
  try {
    return [...faultsOf(value as Readonly<Record<string, unknown>>)];
  } catch (error) {
    return [`cannot be read: ${describeFailure(error)}`];
  }
}

function* faultsOf(given: Readonly<Record<string, unknown>>): Generator<string> {
  const { id, capabilities } = given;
  if (typeof id !== 'string' || !ID.test(id)) {
    const rule = 'must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit';
    yield `id ${rule} (got ${typeof id === 'string' ? JSON.stringify(id) : nameType(id)})`;
  }
  for (const method of METHODS)
    if (typeof given[method] !== 'function') yield `${method} must be a function (got ${nameType(given[method])})`;
  for (const method of OPTIONAL_METHODS)
    if (given[method] !== undefined && typeof given[method] !== 'function')
      yield `${method} must be a function or absent (got ${nameType(given[method])})`;
  const gapMs = (Object(capabilities) as { minWithdrawGapMs?: unknown }).minWithdrawGapMs;
  if (!Number.isInteger(gapMs) || Number(gapMs) < 1 || Number(gapMs) > LONGEST_GAP_MS) {
    const shown = typeof gapMs === 'number' ? String(gapMs) : nameType(gapMs);
    yield `capabilities.minWithdrawGapMs must be a whole number of ms from 1 to ${LONGEST_GAP_MS} (got ${shown})`;
  }
}

function nameType(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`;
}

/** How long a gateway of your own may take. */
export interface OwnGatewayLimits {
  /** Of a query, in ms. @defaultValue 30000 */
  readonly timeoutMs?: number | undefined;
  /** Of a withdrawal, in ms. @defaultValue 60000 */
  readonly withdrawTimeoutMs?: number | undefined;
}

/** A gateway keeps its own limit, and knows more when it ends a call itself. */
const LATER_MS = 1_000;

/**
 * The same gateway, whatever its code does: it may throw, hang, or answer nonsense. What is not a clear answer is
 * `unknown`, or an error, and never a reason to send again.
 */
export function guardGateway(
  own: OwnGateway,
  { timeoutMs = 30_000, withdrawTimeoutMs = 60_000 }: OwnGatewayLimits,
): Gateway {
  const ask = async <Answer>(
    what: string,
    schema: z.ZodType<Answer>,
    call: () => Promise<unknown>,
  ): Promise<Answer> => {
    const answered = await inTime(what, timeoutMs + LATER_MS, call);
    return read(what, schema, answered);
  };
  return {
    capabilities: { ...own.capabilities },
    async openConnection(signal) {
      const opening = call(async () => own.openConnection(signal));
      try {
        return guardConnection(
          await inTime('openConnection', CONNECT_WITHIN_MS + LATER_MS, async () => opening),
          withdrawTimeoutMs,
        );
      } catch (error) {
        // It may still come.
        void opening.then(closeQuietly, () => undefined);
        throw asUnavailable(error);
      }
    },
    async probe(signal) {
      try {
        await inTime('probe', timeoutMs + LATER_MS, async () => own.probe(signal));
      } catch (error) {
        throw asUnavailable(error);
      }
    },
    classifyStop(message, httpStatus) {
      try {
        return read('classifyStop', stopSchema, own.classifyStop(message, httpStatus));
      } catch (error) {
        // In doubt it is about the account: a pause costs an operator's check.
        const blockedReason = `the gateway's own classifyStop failed (${describeFailure(error)}), about: ${message}`;
        return { blockedReason, isOfPayout: false };
      }
    },
    getStatus: async (gatewayId) => ask('getStatus', statusSchema, async () => own.getStatus(gatewayId)),
    comparePayment(status, payment) {
      try {
        return read('comparePayment', differencesSchema, own.comparePayment(status, payment));
      } catch (error) {
        throw asPortError('comparePayment', error);
      }
    },
    readCurrencies: async () => ask('readCurrencies', currenciesSchema, async () => own.readCurrencies()),
    readBalances: async (currencies) => ask('readBalances', balancesSchema, async () => own.readBalances(currencies)),
    ...(own.findPayment && {
      findPayment: async (orderId: string) => ask('findPayment', foundSchema, async () => own.findPayment?.(orderId)),
    }),
    ...(own.getPaymentWallet && {
      getPaymentWallet: async (request: { readonly paymentId: number; readonly orderId: string }) =>
        ask('getPaymentWallet', walletSchema, async () => own.getPaymentWallet?.(request)),
    }),
    ...(own.readEvent && {
      readEvent: (message: EventMessage): EventReading =>
        eventSchema.safeParse(quietly(() => own.readEvent?.(message))).data ?? { kind: 'forged' },
    }),
    close: () => {
      quietly(() => {
        own.close();
      });
    },
  };
}

function guardConnection(own: WithdrawConnection, withdrawTimeoutMs: number): WithdrawConnection {
  const { resendsForMs } = own;
  if (!Number.isFinite(resendsForMs) || resendsForMs < 0) {
    closeQuietly(own);
    const message = `resendsForMs of its connection must be a number of ms of at least 0 (got ${String(resendsForMs)})`;
    throw new GatewayInvalidResponseError('openConnection', message);
  }
  let used = false;
  return {
    resendsForMs,
    get usable() {
      return !used && quietly(() => own.usable) === true;
    },
    async withdraw(request, { mayWrite, orderId }) {
      if (used) return { kind: 'not_sent', reason: 'this connection was already used' };
      used = true;
      const permission = new Permission(mayWrite);
      const startedAt = performance.now();
      const answered = await inTime('withdraw', withdrawTimeoutMs + LATER_MS, async () =>
        own.withdraw(request, { mayWrite: () => permission.ask(), ...(orderId !== undefined && { orderId }) }),
      ).catch((error: unknown) => ({ kind: 'unknown', reason: describeFailure(error) }));
      permission.end();
      const outcome = judge(answered, permission, performance.now() - startedAt);
      if (outcome.kind === 'unknown') reset(own, outcome.reason);
      return outcome;
    },
    reset: (reason) => {
      reset(own, reason);
    },
    close: () => {
      used = true;
      closeQuietly(own);
    },
  };
}

/** The permission to write: given once, and not after the outcome. */
class Permission {
  readonly #mayWrite: () => boolean;
  #isOver = false;
  isGiven = false;

  constructor(mayWrite: () => boolean) {
    this.#mayWrite = mayWrite;
  }

  ask(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.isGiven = this.#mayWrite();
    return this.isGiven;
  }

  end(): void {
    this.#isOver = true;
  }
}

/** "Not sent" is believed only if permission was not given, and anything else only if it was. */
function judge(answered: unknown, { isGiven }: Permission, durationMs: number): WithdrawOutcome {
  const unknown = (reason: string): WithdrawOutcome => ({ kind: 'unknown', reason, durationMs });
  const parsed = outcomeSchema.safeParse(answered);
  if (!parsed.success) return unknown('the gateway gave an outcome that is none');
  const outcome = parsed.data;
  if (outcome.kind === 'not_sent')
    return isGiven ? unknown(`it was permitted to write, and not sent: ${outcome.reason}`) : outcome;
  if (isGiven || outcome.kind === 'unknown') return { ...outcome, durationMs };
  const said = outcome.kind === 'accepted' ? `accepted as ${outcome.gatewayId}` : `rejected: ${outcome.message}`;
  return unknown(`the gateway wrote without permission, and says ${said}`);
}

/** A text that a gateway gives for people. */
const saying = z.string().transform((text) => text.slice(0, 500));
const optionalText = z.string().optional().catch(undefined);
const httpStatus = z.int().optional().catch(undefined);
/** A field that is no hash is as good as none: nothing is decided by it. */
const txhash = txhashField.optional().catch(undefined);

/** Leaves out what is undefined. */
function compact<Fields extends object>(fields: Fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]: Exclude<Fields[Name], undefined>;
  };
}

const outcomeSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('accepted'), gatewayId: gatewayIdField, txhash }).transform(compact),
  z.object({ kind: z.literal('rejected'), message: saying, httpStatus }).transform(compact),
  z.object({ kind: z.literal('unknown'), reason: saying, httpStatus }).transform(compact),
  z.object({ kind: z.literal('not_sent'), reason: saying }),
]);

const statusFields = z.object({
  kind: z.enum(['pending', 'paid', 'failed']),
  txhash,
  paymentId: z.int().optional(),
  addressTo: z.string().optional(),
  amount: z.string().optional(),
  isAmountNumber: z.literal(true).optional(),
  fee: optionalText,
});
const statusSchema = statusFields.transform((status): PaymentStatus => compact(status));
const foundSchema = statusFields
  .extend({ gatewayId: gatewayIdField.optional() })
  .transform((found): FoundPayment => compact(found));

const differencesSchema = z.array(
  z.object({
    field: z.enum(['paymentId', 'addressTo', 'amount']),
    actual: z.union([z.string(), z.number()]).optional(),
    expected: z.union([z.string(), z.number()]),
  }),
) as unknown as z.ZodType<PaymentDifference[]>;

const stopSchema = z
  .object({ blockedReason: z.string().optional(), isOfPayout: z.boolean() })
  .transform(({ blockedReason, isOfPayout }) => ({ blockedReason, isOfPayout }));

const eventSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('payment'), gatewayId: gatewayIdField }),
  z.object({ kind: z.enum(['unreadable', 'forged']) }),
]);

/** No send depends on these: their form is checked as far as readers need it. */
const currencySchema = z.looseObject({ paymentId: z.int(), name: z.string(), usdRate: z.string().optional() });
const currenciesSchema = z.object({
  currencies: z.array(currencySchema),
  isWhole: z.boolean(),
  given: z.array(z.looseObject({})),
}) as unknown as z.ZodType<Awaited<ReturnType<Gateway['readCurrencies']>>>;
const balancesSchema = z.object({
  balances: z
    .array(z.object({ paymentId: z.int().optional(), symbol: z.string().optional(), amount: z.string() }))
    .optional(),
  given: z.unknown(),
}) as unknown as z.ZodType<Awaited<ReturnType<Gateway['readBalances']>>>;
const walletSchema = z
  .object({ address: z.string(), destinationTag: z.string().optional() })
  .transform((wallet) => compact(wallet));

/** @throws GatewayInvalidResponseError */
function read<Answer>(what: string, schema: z.ZodType<Answer>, answered: unknown): Answer {
  const parsed = schema.safeParse(answered);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new GatewayInvalidResponseError(what, `${issue?.path.join('.') || 'it'}: ${issue?.message ?? ''}`);
}

/** A method may throw before it returns a promise. */
async function call<Result>(work: () => Promise<Result>): Promise<Result> {
  return work();
}

/** @throws GatewayUnavailableError after the limit; an error of the port as it is, any other as GatewayInvalidResponseError */
async function inTime<Result>(what: string, limitMs: number, work: () => Promise<Result>): Promise<Result> {
  const running = call(work).then((result) => ({ result }));
  let settled: { readonly result: Result } | undefined;
  try {
    settled = await within(limitMs, running);
  } catch (error) {
    throw asPortError(what, error);
  }
  if (settled !== undefined) return settled.result;
  running.catch(() => undefined);
  throw new GatewayUnavailableError(`The gateway did not respond to ${what} within ${limitMs} ms`);
}

/** Judged by the code: the gateway may have loaded this package a second time. */
function asPortError(what: string, error: unknown): Error {
  const code = errorCode(error) ?? (Object(error) as { code?: unknown }).code;
  if (code === 'GATEWAY_REJECTED') {
    const { gatewayMessage } = error as { gatewayMessage?: unknown };
    return new GatewayRejectedError(what, typeof gatewayMessage === 'string' ? gatewayMessage : describeFailure(error));
  }
  if (code === 'GATEWAY_UNAVAILABLE') {
    const { httpStatus: status } = error as { httpStatus?: unknown };
    return new GatewayUnavailableError(describeFailure(error), typeof status === 'number' ? status : undefined);
  }
  if (code === 'INVALID_INPUT') return error as Error;
  return new GatewayInvalidResponseError(what, describeFailure(error));
}

function asUnavailable(error: unknown): GatewayUnavailableError {
  return error instanceof GatewayUnavailableError ? error : new GatewayUnavailableError(describeFailure(error));
}

function reset(connection: WithdrawConnection, reason: string): void {
  quietly(() => {
    connection.reset(reason);
  });
}

function closeQuietly(connection: WithdrawConnection): void {
  quietly(() => {
    connection.close();
  });
}

function quietly<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
