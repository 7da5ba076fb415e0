import { z } from 'zod';
import type { RedisClient } from '../redis.js';
import { ask, pipelined } from './ledger-connection.js';
import { SHARED_KEYS } from './shared-keys.js';

/** Far more than a process carries. Sharing out what somebody invents must not take the time of the sends. */
const ACCOUNTS_MAX = 20_000;

const platformIds = z.array(z.number()).max(ACCOUNTS_MAX);

const reportSchema = z.object({
  version: z.number(),
  folder: z.string().optional(),
  accounts: platformIds,
  unfit: platformIds,
  claims: platformIds,
  held: platformIds,
});

/** What a worker process tells the others of itself. */
export interface MemberReport {
  /** Raised with every change. */
  readonly version: number;
  /** Names the folder of its journals: processes with the same one have the same journals. */
  readonly folder?: string | undefined;
  /** The accounts that it is set up for. */
  readonly accounts: readonly number[];
  /** Those of them that it cannot send for now. */
  readonly unfit: readonly number[];
  /** Those that it works for. */
  readonly claims: readonly number[];
  /** Those whose lease it holds. */
  readonly held: readonly number[];
}

/** A sign of life. Two that are equal mean that the process did nothing between them. */
export interface Heartbeat {
  /** Raised with every heartbeat. */
  readonly count: number;
  /** Of its last report. */
  readonly version: number;
}

/** What a process says that ends in good order. */
const LEAVING = 'leaving';

/**
 * The worker processes that share accounts, in Redis. It says who competes for an account, and grants nothing: only the
 * lease does. Its keys may be deleted or altered at any time.
 */
export class MemberRegistry {
  readonly #redis: RedisClient;
  readonly #id: string;

  /** @param id - of this process; no other start of any process has it */
  constructor(redis: RedisClient, id: string) {
    this.#redis = redis;
    this.#id = id;
  }

  /**
   * Gives a sign of life, and reads those of all.
   * @returns the heartbeat of each process as it stands there, undefined for one that leaves; and whether this process was
   * listed before
   * @throws RedisUnavailableError; the error of Redis where it refuses
   */
  async exchange({ count, version }: Heartbeat): Promise<{
    readonly heartbeats: ReadonlyMap<string, string | undefined>;
    readonly wasListed: boolean;
  }> {
    const [added, listed] = (await pipelined({ redis: this.#redis }, (pipeline) =>
      pipeline.hset(SHARED_KEYS.members, this.#id, `${count} ${version}`).hgetall(SHARED_KEYS.members),
    )) as [number, Record<string, string>];
    const heartbeats = Object.entries(listed).map(([id, text]) => [id, text === LEAVING ? undefined : text] as const);
    return { heartbeats: new Map(heartbeats), wasListed: added === 0 };
  }

  /** @throws as {@link exchange} */
  async report(report: MemberReport): Promise<void> {
    await ask(this.#redis.hset(SHARED_KEYS.memberReports, this.#id, JSON.stringify(report)));
  }

  /** The reports of the processes that have one that makes sense. @throws as {@link exchange} */
  async readReports(ids: readonly string[]): Promise<ReadonlyMap<string, MemberReport>> {
    if (ids.length === 0) return new Map();
    const texts = await ask(this.#redis.hmget(SHARED_KEYS.memberReports, ...ids));
    const reports = ids.flatMap((id, index) => {
      const report = parseReport(texts[index]);
      return report === undefined ? [] : [[id, report] as const];
    });
    return new Map(reports);
  }

  /** Tells the others that this process gives its accounts up. @throws as {@link exchange} */
  async leave(): Promise<void> {
    await pipelined({ redis: this.#redis }, (pipeline) =>
      pipeline.hset(SHARED_KEYS.members, this.#id, LEAVING).hdel(SHARED_KEYS.memberReports, this.#id),
    );
  }

  /** Removes processes that have ended. One that still lives lists itself again. @throws as {@link exchange} */
  async remove(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await pipelined({ redis: this.#redis }, (pipeline) =>
      pipeline.hdel(SHARED_KEYS.members, ...ids).hdel(SHARED_KEYS.memberReports, ...ids),
    );
  }
}

/** The version of the report that belongs to a heartbeat; undefined where it makes no sense. */
export function versionOf(heartbeat: string): number | undefined {
  const [, version] = /^\d+ (\d+)$/.exec(heartbeat) ?? [];
  return version === undefined ? undefined : Number(version);
}

function parseReport(text: string | null | undefined): MemberReport | undefined {
  try {
    return reportSchema.safeParse(JSON.parse(text ?? '')).data;
  } catch {
    return undefined;
  }
}
