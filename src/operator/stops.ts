/** A reason why an account sends nothing, until it ends. */
export interface Stop {
  /** The headline: the first words of `payouts status`, `payouts doctor`, `/readyz` and the dashboard. */
  readonly words: string;
  /** The page of docs/runbooks that says what to do. */
  readonly runbook: string;
  readonly setBy: string;
  readonly endedBy: string;
  /** What `/readyz` of the worker answers; undefined if no process is there to answer. */
  readonly readyz: 200 | 503 | undefined;
  /** The file in which it stops a send. */
  readonly file: string;
}

const PAUSED = { words: 'Paused', runbook: 'paused', readyz: 200 } as const;
const DISK = { words: 'Journal disk', runbook: 'disk' } as const;
const REFUSED_REDIS = { words: 'Redis cannot be used', runbook: 'redis-refused', readyz: 503 } as const;
const BEGIN_SEND = 'src/ledger/lua/begin-send.lua';
const CHECKS = 'src/worker/sender/send-checks.ts';

/** Every stop of a whole account. The headlines have their words from here; docs/architecture.md prints the table. */
export const STOPS = {
  pause: {
    ...PAUSED,
    setBy: '`payouts pause`; a response that looks like a block, a rate limit or wrong credentials',
    endedBy: '`payouts resume`',
    file: BEGIN_SEND,
  },
  breaker: {
    ...PAUSED,
    setBy: 'too many rejected or unknown sends in a row',
    endedBy: '`payouts resume`',
    file: 'src/ledger/lua/finish-send.lua',
  },
  keptPause: {
    words: 'Paused by the journal',
    runbook: 'tampering',
    setBy: 'a pause that is in the send journal, and gone from Redis without a signed act',
    endedBy: '`payouts resume --key FILE`',
    readyz: 200,
    file: 'src/worker/sender/kept-pause.ts',
  },
  objection: {
    words: 'Stopped: ledger mismatch',
    runbook: 'ledger-mismatch',
    setBy: 'a journal that contradicts the ledger, on any host',
    endedBy: '`payouts adopt-ledger`, or the right data put back',
    readyz: 503,
    file: 'src/worker/sender/journal-audit.ts',
  },
  otherGateway: {
    words: 'Ledger of another gateway',
    runbook: 'other-gateway',
    setBy: 'a `PAYOUT_AUDIENCE` or gateway that the ledger is not bound to',
    endedBy: 'the right `REDIS_URL`, or the right audience',
    readyz: 503,
    file: BEGIN_SEND,
  },
  redisDown: {
    words: 'Redis does not respond',
    runbook: 'redis-down',
    setBy: 'a Redis that is down or hangs',
    endedBy: 'its return; nothing else to do',
    readyz: 503,
    file: 'src/worker/sender/lease-keeper.ts',
  },
  redisRefuses: {
    ...REFUSED_REDIS,
    setBy: 'a Redis that is full, read-only, or cannot write to its disk',
    endedBy: 'the cause removed',
    file: 'src/ledger/write-refusal.ts',
  },
  redisForgets: {
    ...REFUSED_REDIS,
    setBy: 'settings with which Redis may lose a write',
    endedBy: 'the settings of docs/redis.md, checked each minute',
    file: 'src/worker/redis-monitor.ts',
  },
  replicas: {
    words: 'Replicas missing',
    runbook: 'replicas-missing',
    setBy: 'a replica that the account has had and that does not acknowledge',
    endedBy: 'its return, or `payouts redis-replicas`',
    readyz: 503,
    file: 'src/worker/redis-monitor.ts',
  },
  otherVersion: {
    words: 'Ledger of another version',
    runbook: 'journal',
    setBy: 'a ledger in another format',
    endedBy: 'the version that wrote it',
    readyz: 503,
    file: 'src/ledger/ledger-connection.ts',
  },
  journalFull: {
    ...DISK,
    setBy: 'a journal that cannot be written, as on a full disk',
    endedBy: 'room on the disk',
    readyz: 200,
    file: CHECKS,
  },
  journalHangs: {
    ...DISK,
    setBy: 'a disk of the journal that does not answer',
    endedBy: 'its answer; until then another process may take the lease',
    readyz: 503,
    file: 'src/journal/file-send-journal.ts',
  },
  journalRefused: {
    words: 'The worker refuses to send',
    runbook: 'journal',
    setBy: 'a journal that cannot be opened or read, or lacks what was sent before',
    endedBy: 'the right file put back, or `payouts audit adopt-journal`',
    readyz: 503,
    file: 'src/worker/account-worker.ts',
  },
  lease: {
    words: 'Sender without heartbeat',
    runbook: 'worker-missing',
    setBy: 'a sender that died, hangs or lost Redis',
    endedBy: 'a standby after `LEASE_MS` and the wait after a takeover, or a new worker',
    readyz: undefined,
    file: 'src/worker/sender/lease-keeper.ts',
  },
  clock: {
    words: 'Sending fails',
    runbook: 'nothing-is-sent',
    setBy: 'over a second, by either clock, between begin and write: a slow disk, a jump, a machine that slept',
    endedBy: 'the next try that is quick enough; the payout is put back meanwhile',
    readyz: 200,
    file: 'src/worker/sender/sender.ts',
  },
  noResponse: {
    words: 'No response from the gateway',
    runbook: 'gateway',
    setBy: 'a send without a trustworthy response',
    endedBy: '`IN_FLIGHT_MAX_MS`, then an answer of the gateway to a harmless request',
    readyz: 200,
    file: 'src/worker/sender/pacer.ts',
  },
  gatewayDown: {
    words: 'Gateway down',
    runbook: 'gateway',
    setBy: 'a gateway that no connection reaches',
    endedBy: 'its return; tried again every 30 s at least',
    readyz: 200,
    file: 'src/worker/sender/pacer.ts',
  },
  queue: {
    words: 'Nothing is sent',
    runbook: 'nothing-is-sent',
    setBy: 'a queue that was paused by hand in BullMQ',
    endedBy: 'the command that `payouts doctor` prints',
    readyz: 200,
    file: 'src/queues/payout-queues.ts',
  },
} as const satisfies Readonly<Record<string, Stop>>;

/** Words and runbook of a stop, as a headline has them. */
export function headlineOf<Of extends Stop>({ words, runbook }: Of): readonly [words: Of['words'], Of['runbook']] {
  return [words, runbook];
}
