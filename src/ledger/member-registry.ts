import { z } from 'zod';
import { readJson } from '../base/parse-json.js';
import type { RedisClient } from '../base/redis.js';
import { ask, pipelined } from './ledger-connection.js';
import { SHARED_KEYS } from './keys.js';

/** Far more than a process has. Sharing invented accounts must not delay the sends. */
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

export interface MemberReport {
  /** Raised with every change. */
  readonly version: number;
  /** Names the folder of its journals: processes with the same name share the journals. */
  readonly folder?: string | undefined;
  readonly accounts: readonly number[];
  /** Accounts that it cannot send for now. */
  readonly unfit: readonly number[];
  /** Accounts that it works for. */
  readonly claims: readonly number[];
  /** Accounts whose lease it holds. */
  readonly held: readonly number[];
}

/** Two equal heartbeats mean that the process did nothing between them. */
export interface Heartbeat {
  readonly count: number;
  /** Of its last report. */
  readonly version: number;
}

const LEAVING = 'leaving';

/**
 * The worker processes that share accounts. It says who competes for an account and grants nothing: only the lease
 * does. Its keys may be deleted or altered at any time. Methods throw RedisUnavailableError, or the error of Redis if
 * it refuses.
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
   * Writes a heartbeat, and reads all.
   * @returns each process's heartbeat, undefined for one that leaves; and whether this process was listed before
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

  async report(report: MemberReport): Promise<void> {
    await ask(this.#redis.hset(SHARED_KEYS.memberReports, this.#id, JSON.stringify(report)));
  }

  /** Skips invalid reports. */
  async readReports(ids: readonly string[]): Promise<ReadonlyMap<string, MemberReport>> {
    if (ids.length === 0) return new Map();
    const texts = await ask(this.#redis.hmget(SHARED_KEYS.memberReports, ...ids));
    const reports = ids.flatMap((id, index) => {
      const report = parseReport(texts[index]);
      return report === undefined ? [] : [[id, report] as const];
    });
    return new Map(reports);
  }

  async leave(): Promise<void> {
    await pipelined({ redis: this.#redis }, (pipeline) =>
      pipeline.hset(SHARED_KEYS.members, this.#id, LEAVING).hdel(SHARED_KEYS.memberReports, this.#id),
    );
  }

  /** Removes processes that have ended. A live one lists itself again. */
  async remove(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await pipelined({ redis: this.#redis }, (pipeline) =>
      pipeline.hdel(SHARED_KEYS.members, ...ids).hdel(SHARED_KEYS.memberReports, ...ids),
    );
  }
}

/** Undefined if it is invalid. */
export function versionOf(heartbeat: string): number | undefined {
  const [, version] = /^\d+ (\d+)$/.exec(heartbeat) ?? [];
  return version === undefined ? undefined : Number(version);
}

function parseReport(text: string | null | undefined): MemberReport | undefined {
  return reportSchema.safeParse(readJson(text ?? '')).data;
}
