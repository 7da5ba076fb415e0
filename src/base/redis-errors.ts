import { InvalidConfigError, PayoutError, RedisUnavailableError, UnreadableRecordError } from './errors.js';

/** What ioredis's errors mean, so that callers need not know ioredis. */

/**
 * ioredis names an error after its class, also for a client of another copy of ioredis, and a bundler that minifies
 * renames classes: each refusal by Redis would then look like a mistake in a program.
 * @throws InvalidConfigError
 */
export function requireClassNames(): void {
  if (PayoutError.name === 'PayoutError') return;
  const message =
    'has renamed classes: have it keep their names (esbuild: keepNames, terser: keep_classnames and keep_fnames)';
  throw new InvalidConfigError([{ field: 'the bundler', message }]);
}

/** Replies of a Redis that is there but cannot work now; every other error reply is a mistake of ours. */
const UNAVAILABLE_REPLIES: ReadonlySet<string | undefined> = new Set([
  ...['LOADING', 'READONLY', 'CLUSTERDOWN', 'MASTERDOWN', 'TRYAGAIN', 'OOM', 'MISCONF', 'BUSY', 'NOREPLICAS'],
  ...['UNBLOCKED', 'NOAUTH', 'WRONGPASS', 'NOPERM', 'MAXCLIENTS'],
]);

/** Redis has no code of its own for this one. */
const TOO_MANY_CLIENTS = 'ERR max number of clients';

/** The code of an error reply of Redis, such as `NOAUTH`; undefined for every other error. */
export function replyCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return undefined;
  return error.message.startsWith(TOO_MANY_CLIENTS) ? 'MAXCLIENTS' : error.message.split(' ', 1)[0];
}

const CONNECTION_ERROR_NAMES = new Set([
  'AbortError',
  'InterruptError',
  'MaxRetriesPerRequestError',
  'ClusterAllFailedError',
]);

const CONNECTION_ERROR_MESSAGE =
  /^(?:Connection is (?:closed|aborted|discarded)|Command timed out|Socket timeout|connect ETIMEDOUT|Stream isn't writeable|All sentinels are unreachable|None of startup nodes|Node is disconnected|Cluster (?:is ended|is disconnect|isn't ready)|Too many Cluster redirections|Unknown RESP type)/;

const CONNECTION_ERROR_CODE =
  /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_|ENOTFOUND|EADDRNOTAVAIL|EPROTO|ERR_TLS_|ERR_SSL_|ERR_SOCKET_|ERR_STREAM_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/**
 * Converts a failed Redis call into this project's error, so that callers need not know ioredis.
 * @returns a RedisUnavailableError for connection trouble, timeouts and a Redis that cannot work now; an
 * UnreadableRecordError for a key of another type; other errors, such as a script's own, unchanged
 */
export function toRedisError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof PayoutError) return error;
  if (isOfAnotherType(error)) return new UnreadableRecordError(keyOf(error), error);
  if (!isUnavailable(error)) return error;
  return new RedisUnavailableError(
    `Redis unavailable (${describeTrouble(error)}): check that it runs, and the address, user and password in REDIS_URL; asking again is safe`,
    { cause: error },
  );
}

/** Redis puts `ERR` before an error that a script raises again, after it undid what it had written. */
function isOfAnotherType(error: Error): boolean {
  return error.name === 'ReplyError' && /^(?:ERR )?WRONGTYPE /.test(error.message);
}

/** ioredis adds the command to Redis's error. A script has several keys, and Redis does not say which one it was. */
function keyOf({
  command,
}: Error & { readonly command?: { readonly name: string; readonly args: unknown[] } }): string {
  const keys = (command?.args ?? []).filter((text) => typeof text === 'string' && text.startsWith('{payouts:'));
  return keys.length === 1 ? `The key ${String(keys[0])}` : 'A key of the ledger';
}

function isUnavailable(error: Error): boolean {
  if (error.name === 'ReplyError') return UNAVAILABLE_REPLIES.has(replyCode(error));
  // Errors that only a mistake in a program makes; Node gives some of them codes as well.
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return false;
  if (CONNECTION_ERROR_NAMES.has(error.name) || CONNECTION_ERROR_MESSAGE.test(error.message)) return true;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === 'connect' || (typeof code === 'string' && CONNECTION_ERROR_CODE.test(code));
}

/** Why a call failed, without advice. ioredis speaks of its own options if a command found no connection. */
export function describeTrouble(error: Error): string {
  if (error instanceof RedisUnavailableError && error.cause instanceof Error) return describeTrouble(error.cause);
  const known = describeLogin(error) ?? (NOT_TLS.test(error.message) ? WITHOUT_TLS : undefined);
  if (known !== undefined) return known;
  if (error.message.startsWith('Unknown RESP type')) return 'what answers there does not speak the protocol of Redis';
  const isUnconnected =
    error.name === 'MaxRetriesPerRequestError' || error.message.startsWith("Stream isn't writeable");
  if (error.cause !== undefined && (isUnconnected || WITHOUT_REASON.test(error.message))) {
    return describeTrouble(error.cause as Error);
  }
  return isUnconnected ? 'no connection' : error.message;
}

/** Of a command that waited for a connection; its cause says why there was none. */
const WITHOUT_REASON = /^(?:Command timed out|Connection is closed)/;

export function describeLogin(error: Error): string | undefined {
  switch (replyCode(error)) {
    case 'NOAUTH':
      return 'it asks for a password, and there is none in the address (NOAUTH)';
    case 'WRONGPASS':
      return 'it knows no such user and password (WRONGPASS)';
    default:
      return undefined;
  }
}

export const WITHOUT_TLS =
  'the port is open, but does not speak TLS: give its TLS port, or redis:// in place of rediss://';

/** OpenSSL's words for a reply that is not TLS. */
const NOT_TLS = /wrong version number|packet length too long/;
