import { type Clock, every, within } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { type MemberRegistry, type MemberReport, versionOf } from '../../ledger/member-registry.js';
import type { AccountPart } from '../account-runtime.js';
import { assignAccounts, type Member } from './assign-accounts.js';
import { type AccountFitness, HoldDown, OwnReport } from './own-report.js';

/**
 * This folder shares accounts among the worker processes that have them; start reading here. It decides who competes
 * for an account. The lease (`worker/sender`) alone guarantees one sender.
 */

export interface SharedAccount {
  readonly platformId: number;
  readonly part: AccountPart;
  readonly fitness: AccountFitness;
  readonly holdsLease: boolean;
  assign(part: AccountPart): void;
}

export interface AccountSharingOptions {
  readonly registry: Pick<MemberRegistry, 'exchange' | 'report' | 'readReports' | 'leave' | 'remove'>;
  /** Unique for every start of a process. */
  readonly id: string;
  readonly accounts: readonly SharedAccount[];
  /** Names the journals' folder, so that processes that share it know it. Undefined while it has no name. */
  readonly nameFolder: () => Promise<string | undefined>;
  /** How long to wait for the registry after this error, in ms, before this process competes for all accounts. */
  readonly patienceMs: (error: unknown) => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

type Other = Member & Pick<MemberReport, 'folder' | 'version'>;

const EXCHANGE_EVERY_MS = 1_000;

/** Changes are published within this time, in ms. */
const PUBLISH_WITHIN_MS = 100;

/** An unavailable Redis must not delay the end of the process. */
const LEAVE_WITHIN_MS = 500;

/**
 * Shares accounts among processes. Publishes once a second what this process does, and works for the accounts from
 * {@link assignAccounts}. Without the registry, the leases alone decide.
 */
export class AccountSharing {
  readonly #options: AccountSharingOptions;
  readonly #lives = new MemberLives();
  readonly #holdDown = new HoldDown();
  readonly #own: OwnReport;
  #reports: ReadonlyMap<string, MemberReport> = new Map();
  #situation: string | undefined;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #withoutSince: number | undefined;
  #isWithout = false;

  constructor(options: AccountSharingOptions) {
    this.#options = options;
    this.#own = new OwnReport(options.clock);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Asks the others to take over. The accounts keep their parts. Safe to call twice, and before start. */
  async stop(): Promise<void> {
    this.#stop.abort();
    const leaving = this.#running?.then(async () => this.#options.registry.leave()).catch(() => undefined);
    await within(LEAVE_WITHIN_MS, Promise.resolve(leaving));
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const shareOut = async (): Promise<number> => ((await this.#shareOut()) ? PUBLISH_WITHIN_MS : EXCHANGE_EVERY_MS);
    const onError = (error: Error): void => {
      this.#doWithout(error);
    };
    await every(EXCHANGE_EVERY_MS, shareOut, { clock, signal: this.#stop.signal, onError });
  }

  /**
   * @returns whether this process works for other accounts than before
   * @throws Error if the registry is unusable
   */
  async #shareOut(): Promise<boolean> {
    const others = await this.#exchange();
    this.#noteRegistry();
    return this.#take(others);
  }

  async #exchange(): Promise<readonly Other[]> {
    const { registry, id, nameFolder } = this.#options;
    const content = { ...this.#describe(), folder: await nameFolder() };
    const due = this.#own.due(content);
    if (due !== undefined) {
      await registry.report(due);
      this.#own.notePublished(due);
    }
    const { heartbeats, wasListed } = await registry.exchange(this.#own.nextHeartbeat());
    // The registry was deleted.
    if (!wasListed) this.#own.publishAgain();
    const now = this.#options.clock.now();
    this.#lives.note(heartbeats, now);
    const alive = new Map([...this.#lives.alive(now)].filter(([other]) => other !== id));
    await this.#readReports(alive);
    await registry.remove(this.#lives.forgotten(now).filter((other) => other !== id));
    return [...alive.keys()].flatMap((other) => {
      const report = this.#reports.get(other);
      return report === undefined
        ? []
        : [{ ...toMember(other, report), folder: report.folder, version: report.version }];
    });
  }

  async #readReports(alive: ReadonlyMap<string, string>): Promise<void> {
    const outdated = [...alive].filter(([id, heartbeat]) => {
      const version = versionOf(heartbeat);
      return version !== undefined && this.#reports.get(id)?.version !== version;
    });
    const read = await this.#options.registry.readReports(outdated.map(([id]) => id));
    this.#reports = new Map([...this.#reports, ...read].filter(([id]) => alive.has(id)));
  }

  #describe(): Omit<MemberReport, 'version' | 'folder'> {
    const { accounts, clock } = this.#options;
    const now = clock.now();
    const idsOf = (holds: (account: SharedAccount) => boolean): number[] =>
      accounts.filter(holds).map(({ platformId }) => platformId);
    return {
      accounts: idsOf(() => true),
      unfit: idsOf(({ platformId, fitness }) => this.#holdDown.isUnfit(platformId, fitness, now)),
      claims: idsOf(({ part }) => part === 'send'),
      held: idsOf(({ holdsLease }) => holdsLease),
    };
  }

  #take(others: readonly Other[]): boolean {
    const { id, accounts, logger } = this.#options;
    const described = this.#describe();
    const situation = JSON.stringify([
      described,
      this.#own.folder,
      others.map(({ id: other, version }) => [other, version]),
    ]);
    if (situation === this.#situation) return false;
    const own = { ...toMember(id, described), folder: this.#own.folder };
    const members = [own, ...others];
    const owners = assignAccounts(members);
    const folders = new Map(members.map((member) => [member.id, member.folder]));
    const before = accounts.filter(({ part }) => part === 'send').map(({ platformId }) => platformId);
    for (const account of accounts) {
      const owner = owners.get(account.platformId) ?? id;
      const isShared = own.folder !== undefined && folders.get(owner) === own.folder;
      account.assign(owner === id ? 'send' : isShared ? 'rest' : 'watch');
    }
    this.#situation = situation;
    const now = accounts.filter(({ part }) => part === 'send').map(({ platformId }) => platformId);
    if (now.join() === before.join()) return false;
    logger.info({ processes: members.length, own: now.length, of: accounts.length }, 'accounts shared out');
    return true;
  }

  #noteRegistry(): void {
    if (this.#isWithout) this.#options.logger.info({}, 'accounts are shared out again');
    this.#isWithout = false;
    this.#withoutSince = undefined;
  }

  /** Changes nothing until the patience ends. */
  #doWithout(error: Error): void {
    const { clock, logger, accounts, patienceMs } = this.#options;
    const { message } = error;
    this.#withoutSince ??= clock.now();
    if (this.#isWithout || clock.now() - this.#withoutSince < patienceMs(error)) {
      logger.debug({ error: message }, 'cannot share accounts out now');
      return;
    }
    this.#isWithout = true;
    logger.warn({ error: message }, 'cannot share accounts out: this process competes for all of them');
    this.#situation = undefined;
    for (const account of accounts) account.assign('send');
  }
}

function toMember(id: string, { accounts, unfit, claims, held }: Omit<MemberReport, 'version' | 'folder'>): Member {
  return { id, accounts: new Set(accounts), unfit: new Set(unfit), claims: new Set(claims), held: new Set(held) };
}

/** A process whose heartbeat does not change for this time, in ms, counts as dead. */
export const GONE_AFTER_MS = 3_000;

/** A process without a heartbeat for this time, in ms, leaves the registry. */
const FORGOTTEN_AFTER_MS = 60_000;

/** A reader with longer gaps, in ms, cannot know that a heartbeat stopped. */
const LOOK_GAP_MAX_MS = 2_500;

/**
 * The part of a longer gap that counts, in ms. Under a slow Redis every look is late, and dead processes must still be
 * found.
 */
const GAP_COUNTS_MS = 1_000;

interface Sight {
  readonly heartbeat: string | undefined;
  /** When this heartbeat was first seen. */
  readonly since: number;
}

/**
 * Follows heartbeats on this process's own clock. A process is alive if its heartbeat changes, or at first sight, since
 * the next beat may follow.
 */
export class MemberLives {
  readonly #sights = new Map<string, Sight>();
  #lookedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param heartbeats - undefined for a process that leaves. A missing one may be deleted by mistake, so it counts
   * until its time is over
   * @param now - monotonic, ms
   */
  note(heartbeats: ReadonlyMap<string, string | undefined>, now: number): void {
    const gapMs = now - this.#lookedAt;
    const unseenMs = gapMs > LOOK_GAP_MAX_MS ? gapMs - GAP_COUNTS_MS : 0;
    this.#lookedAt = now;
    for (const [id, heartbeat] of heartbeats) {
      const before = this.#sights.get(id);
      if (before?.heartbeat !== heartbeat || before === undefined) this.#sights.set(id, { heartbeat, since: now });
    }
    for (const [id, { heartbeat, since }] of this.#sights) {
      // Processes may have lived during the unseen time.
      const seenSince = Math.min(now, since + unseenMs);
      if (!heartbeats.has(id) && now - seenSince >= GONE_AFTER_MS) this.#sights.delete(id);
      else this.#sights.set(id, { heartbeat, since: seenSince });
    }
  }

  alive(now: number): ReadonlyMap<string, string> {
    const alive = [...this.#sights].flatMap(([id, { heartbeat, since }]) =>
      heartbeat === undefined || now - since >= GONE_AFTER_MS ? [] : [[id, heartbeat] as const],
    );
    return new Map(alive);
  }

  forgotten(now: number): string[] {
    return [...this.#sights].filter(([, { since }]) => now - since >= FORGOTTEN_AFTER_MS).map(([id]) => id);
  }
}
