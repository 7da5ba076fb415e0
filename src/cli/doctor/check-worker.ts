import { z } from 'zod';
import { ok, problem, warning, type CheckResult } from './check-result.js';

/** Where a worker serves its health. */
export interface WorkerPlace {
  readonly host: string;
  readonly port: number;
}

const NAME = 'worker';
const RESPOND_WITHIN_MS = 5_000;
const READ_LOG = 'Read the log of the worker; see docs/operations.md.';

/** What this check reads of `/readyz`. A worker of an earlier version has no warnings. */
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

/** What the worker on this host says about itself: it knows more than Redis and the gateway do. */
export async function checkWorker(place: WorkerPlace, platformIds: readonly number[]): Promise<CheckResult[]> {
  const url = `http://${reachable(place.host)}:${place.port}/readyz`;
  let said: Readiness;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(RESPOND_WITHIN_MS) });
    said = readiness.parse(await response.json());
  } catch (error) {
    const detail = `no worker responds at ${url} (${describe(error)})`;
    return [
      warning(NAME, detail, 'Start `payouts worker`, or set HEALTH_HOST and HEALTH_PORT to where it serves /readyz.'),
    ];
  }
  const findings = [...judge(said, platformIds)];
  if (findings.length > 0) return findings;
  return [ok(NAME, `${said.accounts.map(({ role }) => role).join(', ')}, without warnings`)];
}

function* judge({ ready, redis, accounts }: Readiness, platformIds: readonly number[]): Generator<CheckResult> {
  const missing = platformIds.filter((id) => accounts.every(({ platformId }) => platformId !== id));
  if (accounts.length > 0 && missing.length > 0) {
    yield warning(NAME, `it works for other accounts, not for ${missing.join(', ')}`, 'Check HEALTH_PORT.');
  }
  if (redis !== 'up') yield problem(NAME, 'not ready: Redis is unavailable to it', 'Check Redis, and REDIS_URL.');
  const refused = accounts.filter(({ reason }) => reason !== undefined);
  for (const { platformId, reason = '' } of refused) {
    yield { ...problem(NAME, `must not send: ${reason}`, READ_LOG), platformId };
  }
  if (!ready && redis === 'up' && refused.length === 0) yield problem(NAME, 'not ready: it is stopping', READ_LOG);
  for (const { platformId, warnings } of accounts) {
    for (const found of warnings) yield { ...warning(NAME, found, READ_LOG), platformId };
  }
}

/** An address that stands for all of this host's. */
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
