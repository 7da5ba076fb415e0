import { z } from 'zod';
import { DAY_MS } from '../../base/clock.js';
import type { Clock } from '../../base/clock.js';
import { PayoutError } from '../../base/errors.js';
import { formatCount, formatDuration } from '../../base/format.js';
import { type KernelRetries, readKernelRetries, resendsForMs } from '../../base/kernel-resend.js';
import { ACCOUNT_SETTINGS, DEFAULT_ACCOUNT_SETTINGS, GUARD_MS } from '../../base/settings.js';
import type { FactsGateway, OwnGateway } from '../../gateway/gateway.js';
import { examineConnection, type ExaminedConnection, openGateway } from '../../gateway/open-gateway.js';
import { silentLogger } from '../../base/logger.js';
import type { RedisClient } from '../../base/redis.js';
import { UnservedAccounts } from '../../operator/unserved-accounts.js';
import type { AccountOptions } from '../../worker/core-worker.js';
import { ok, problem, warning, type CheckResult, type Finding } from './check-result.js';

/** @param own - the accounts that doctor checks one by one */
export async function checkOtherAccounts(redis: RedisClient, own: readonly number[], clock: Clock): Promise<Finding> {
  const unserved = await new UnservedAccounts(clock).find(redis, own);
  if (unserved.length === 0) return ok('no payouts in this Redis wait for an account without a worker');
  const waiting = unserved.map(
    ({ platformId, payouts }) => `${formatCount(payouts, 'payout')} of account ${platformId}`,
  );
  return warning(
    `no worker serves ${waiting.join(', ')}`,
    'Start a worker for the account, or cancel them there: docs/runbooks/unserved.md.',
  );
}

const GATEWAY_TIMEOUT_MS = 10_000;

const CERTIFICATE_WARNING_DAYS = 14;

/** @param ca - PEM certificates to trust instead of the system's */
export async function checkGatewayConnection(baseUrl: string, clock: Clock, ca?: string): Promise<Finding> {
  try {
    const { tls } = await examineConnection(baseUrl, GATEWAY_TIMEOUT_MS, ca);
    return tls === undefined ? ok('reachable, without TLS since it is on this machine') : checkCertificate(tls, clock);
  } catch (error) {
    return problem(
      (error as Error).message,
      'Check GATEWAY_BASE_URL, name resolution and firewall; for a certificate of your own authority, NODE_EXTRA_CA_CERTS.',
    );
  }
}

/** Opens a connection as for a withdrawal, and closes it without one. */
async function checkOwnConnection(gateway: OwnGateway, clock: Clock): Promise<Finding> {
  const guarded = openGateway({ gateway, platformId: 0, clock });
  try {
    const connection = await guarded.openConnection(AbortSignal.timeout(GATEWAY_TIMEOUT_MS));
    connection.close();
    return ok(`reachable, by the gateway ${gateway.id} of your own`);
  } catch (error) {
    return problem((error as Error).message, `Check the gateway ${gateway.id}: see docs/own-gateway.md.`);
  }
}

function checkCertificate({ protocol, validTo }: NonNullable<ExaminedConnection['tls']>, clock: Clock): Finding {
  const days = Math.floor((Date.parse(validTo) - clock.wallNow()) / DAY_MS);
  const detail = `reachable, ${protocol ?? 'TLS'}, certificate valid for ${days} days`;
  return days < CERTIFICATE_WARNING_DAYS
    ? warning(detail, 'Ask the operator of the gateway to renew it: without it nothing is sent.')
    : ok(detail);
}

/** @param subject - what knows the account, in words */
async function checkGatewayAccount(
  gateway: Pick<FactsGateway, 'readBalances'>,
  subject: string,
  own?: OwnGateway,
): Promise<Finding> {
  try {
    await gateway.readBalances([]);
    return ok(subject);
  } catch (error) {
    if (!(error instanceof PayoutError)) throw error;
    return problem(error.message, own ? `Check the gateway ${own.id}: see docs/own-gateway.md.` : describeFix(error));
  }
}

function describeFix({ code }: PayoutError): string {
  switch (code) {
    case 'GATEWAY_REJECTED':
      return 'Check GATEWAY_PLATFORM_ID, GATEWAY_SECRET_KEY and GATEWAY_API; if all are right, ask the gateway about the account.';
    case 'GATEWAY_INVALID_RESPONSE':
      return 'Check GATEWAY_BASE_URL: the server at that address is not the gateway.';
    default:
      return 'Try again later; if it persists, ask the operator of the gateway.';
  }
}

/** No send depends on the currencies. */
export async function checkGatewayCurrencies(gateway: Pick<FactsGateway, 'readCurrencies'>): Promise<Finding> {
  try {
    const { given } = await gateway.readCurrencies();
    if (given.length > 0) return ok(`${given.length} currencies`);
    return warning('the list is empty', 'Ask the gateway which currencies the account may pay out.');
  } catch (error) {
    if (!(error instanceof PayoutError)) throw error;
    return warning(error.message, 'Payouts can be sent all the same; ask the gateway if it persists.');
  }
}

const RESPOND_WITHIN_MS = 5_000;
const READ_LOG = 'Read the log of the worker; see docs/runbooks/README.md.';

/** An older worker has no warnings. */
const readiness = z.object({
  ready: z.boolean(),
  redis: z.string(),
  accounts: z.array(
    z.object({
      platformId: z.number(),
      role: z.string(),
      reason: z.string().optional(),
      warnings: z.array(z.string()).default([]),
    }),
  ),
});

type Readiness = z.infer<typeof readiness>;

/** A worker knows more than Redis and the gateway. */
export async function checkWorker(host: string, port: number, platformIds: readonly number[]): Promise<Finding[]> {
  const url = `http://${reachable(host)}:${port}/readyz`;
  let said: Readiness;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(RESPOND_WITHIN_MS) });
    said = readiness.parse(await response.json());
  } catch (error) {
    const detail = `no worker responds at ${url} (${describe(error)})`;
    return [warning(detail, 'Start `payouts worker`, or set HEALTH_HOST and HEALTH_PORT to where it serves /readyz.')];
  }
  const findings = [...findTrouble(said, platformIds)];
  if (findings.length > 0) return findings;
  return [ok(`${said.accounts.map(({ role }) => role).join(', ')}, without warnings`)];
}

function* findTrouble({ ready, redis, accounts }: Readiness, platformIds: readonly number[]): Generator<Finding> {
  const missing = platformIds.filter((id) => accounts.every(({ platformId }) => platformId !== id));
  if (accounts.length > 0 && missing.length > 0) {
    yield warning(`it works for other accounts, not for ${missing.join(', ')}`, 'Check HEALTH_PORT.');
  }
  if (redis !== 'up') yield problem('not ready: Redis is unavailable to it', 'Check Redis, and REDIS_URL.');
  const refused = accounts.filter(({ reason }) => reason !== undefined);
  for (const { platformId, reason = '' } of refused) {
    yield { ...problem(`must not send: ${reason}`, READ_LOG), platformId };
  }
  if (!ready && redis === 'up' && refused.length === 0) yield problem('not ready: it is stopping', READ_LOG);
  for (const { platformId, warnings } of accounts) {
    for (const found of warnings) yield { ...warning(found, READ_LOG), platformId };
  }
}

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

function describe(error: unknown): string {
  const { message, cause } = error as Error;
  if (error instanceof z.ZodError) return 'what responds is no worker';
  return (cause as Error | undefined)?.message ?? message;
}

/** Longer than an operator who was woken would wait. */
const TAKE_OVER_SLOW_MS = 5 * 60 * 1_000;

/**
 * How long nothing is sent after a worker of this host ended in the middle of a request.
 * @param retries - of this host's kernel
 */
export function checkKernel(retries: KernelRetries, inFlightMaxMs: number): Finding {
  const waitMs = GUARD_MS + resendsForMs(retries) + inFlightMaxMs;
  const settings = `net.ipv4.tcp_retries2 = ${retries.retries}, net.ipv4.tcp_orphan_retries = ${retries.orphanRetries}`;
  const detail = `a worker that ends in the middle of a request may still have sent it ${formatDuration(waitMs)} later (${settings}): for so long the next one sends nothing`;
  if (waitMs <= TAKE_OVER_SLOW_MS) return ok(detail);
  return warning(detail, 'Lower both settings to 6 for the worker: see "Take-over times" in docs/deploy.md.');
}

/** Asks nothing more of an unreachable gateway. */
export async function* checkGateway(account: AccountOptions, clock: Clock): AsyncGenerator<CheckResult> {
  const { api = ACCOUNT_SETTINGS.api.default, platformId, timeoutMs = GATEWAY_TIMEOUT_MS, gateway: own } = account;
  const connection =
    account.gateway === undefined
      ? await checkGatewayConnection(account.baseUrl, clock)
      : await checkOwnConnection(account.gateway, clock);
  yield { name: 'gateway connection', ...connection };
  // A gateway on this host gets each request at once.
  if (account.baseUrl?.startsWith('https:') !== false) {
    const { inFlightMaxMs = DEFAULT_ACCOUNT_SETTINGS.inFlightMaxMs } = account;
    yield { name: 'kernel', ...checkKernel(readKernelRetries(), inFlightMaxMs) };
  }
  if (connection.status === 'problem') return;
  const gateway = openGateway({
    ...(account.gateway === undefined
      ? { api, baseUrl: account.baseUrl, secretKey: account.secretKey }
      : { gateway: account.gateway }),
    ...{ platformId, clock },
    timeoutMs: Math.min(timeoutMs, GATEWAY_TIMEOUT_MS),
    logger: silentLogger,
  });
  try {
    const subject = own
      ? `${own.id} knows the account`
      : `platform id and secret key are right: /balance of API ${api} responds`;
    const known = await checkGatewayAccount(gateway, subject, own);
    yield { name: 'gateway account', ...known };
    if (known.status === 'ok') yield { name: 'gateway currencies', ...(await checkGatewayCurrencies(gateway)) };
  } finally {
    gateway.close();
  }
}
