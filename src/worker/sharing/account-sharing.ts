import { type Clock, every, within } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { type MemberRegistry, type MemberReport, versionOf } from '../../ledger/member-registry.js';
import type { AccountPart } from '../account-worker-options.js';
import { assignAccounts, type Member } from './assign-accounts.js';
import { type AccountFitness, HoldDown, OwnReport } from './own-report.js';

/**
 * This folder shares accounts out among the worker processes that have them. It decides who competes for an account; that
 * only one sends is the lease's business (`worker/sender`), whatever happens here. Start reading here.
 */

/** One of the accounts that are shared. */
export interface SharedAccount {
  readonly platformId: number;
  readonly part: AccountPart;
  readonly fitness: AccountFitness;
  readonly holdsLease: boolean;
  assign(part: AccountPart): void;
}

interface AccountSharingOptions {
  readonly registry: Pick<MemberRegistry, 'exchange' | 'report' | 'readReports' | 'leave' | 'remove'>;
  /** Of this process; unique for every start. */
  readonly id: string;
  readonly accounts: readonly SharedAccount[];
  /** Names the folder of the journals, so that processes with the same one know it; undefined while it cannot be named. */
  readonly nameFolder: () => Promise<string | undefined>;
  /** For how long the registry is waited for after this error, in ms, before this process competes for all accounts. */
  readonly patienceMs: (error: unknown) => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Another process, and its report. */
type Other = Member & Pick<MemberReport, 'folder' | 'version'>;

const EXCHANGE_EVERY_MS = 1_000;

/** What was decided is told to the others this soon, in ms. */
const TELL_WITHIN_MS = 100;

/** An unavailable Redis keeps no process from ending. */
const LEAVE_WITHIN_MS = 500;

/**
 * Shares accounts with the other processes that have them: tells once a second what this process does, and works for the
 * accounts that {@link assignAccounts} gives it. Where the registry cannot be used, the leases alone decide.
 */
export class AccountSharing {
  readonly #options: AccountSharingOptions;
  readonly #lives = new MemberLives();
  readonly #holdDown = new HoldDown();
  readonly #own: OwnReport;
  /** The last report of each other process. */
  #reports: ReadonlyMap<string, MemberReport> = new Map();
  /** What the accounts were last shared out by. */
  #situation: string | undefined;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  /** Since when the registry cannot be used. */
  #withoutSince: number | undefined;
  #isWithout = false;

  constructor(options: AccountSharingOptions) {
    this.#options = options;
    this.#own = new OwnReport(options.clock);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Tells the others to take over. The accounts keep their parts. Safe to call twice, and before start. */
  async stop(): Promise<void> {
    this.#stop.abort();
    const leaving = this.#running?.then(async () => this.#options.registry.leave()).catch(() => undefined);
    await within(LEAVE_WITHIN_MS, Promise.resolve(leaving));
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const shareOut = async (): Promise<number> => ((await this.#shareOut()) ? TELL_WITHIN_MS : EXCHANGE_EVERY_MS);
    const onError = (error: Error): void => {
      this.#doWithout(error);
    };
    await every(EXCHANGE_EVERY_MS, shareOut, { clock, signal: this.#stop.signal, onError });
  }

  /**
   * @returns whether this process works for other accounts than before
   * @throws Error when the registry cannot be used
   */
  async #shareOut(): Promise<boolean> {
    const others = await this.#exchange();
    this.#noteRegistry();
    return this.#take(others);
  }

  /** Tells what this process does, and reads what the others told. */
  async #exchange(): Promise<readonly Other[]> {
    const { registry, id, nameFolder } = this.#options;
    const content = { ...this.#describe(), folder: await nameFolder() };
    const due = this.#own.due(content);
    if (due !== undefined) {
      await registry.report(due);
      this.#own.noteTold(due);
    }
    const { heartbeats, wasListed } = await registry.exchange(this.#own.nextHeartbeat());
    // Somebody deleted the registry.
    if (!wasListed) this.#own.tellAgain();
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

  /** Until patience ends everything stays as it is. */
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

/** A process whose heartbeat stands still for this time, in ms, is taken for dead. */
export const GONE_AFTER_MS = 3_000;

/** A process that has shown nothing for this time is taken out of the registry, in ms. */
const FORGOTTEN_AFTER_MS = 60_000;

/** Who looks less often than this, in ms, has not seen that a heartbeat stands still. */
const LOOK_GAP_MAX_MS = 2_500;

/** As much of such a gap counts, in ms: with a slow Redis every look comes late, and the dead must be found all the same. */
const GAP_COUNTS_MS = 1_000;

interface Sight {
  readonly heartbeat: string | undefined;
  /** Since when it was seen to be this one. */
  readonly since: number;
}

/**
 * Follows the heartbeats of processes on this process's own clock: one whose heartbeat changes is alive, and so is one that
 * is seen for the first time, since its heart may beat in a moment.
 */
export class MemberLives {
  readonly #sights = new Map<string, Sight>();
  #lookedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param heartbeats - as they are now; undefined for a process that leaves. One that is not listed any more may have been
   * deleted by mistake: it counts until its time is over
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
      // Nothing was seen meanwhile, of which some may have lived.
      const seenSince = Math.min(now, since + unseenMs);
      if (!heartbeats.has(id) && now - seenSince >= GONE_AFTER_MS) this.#sights.delete(id);
      else this.#sights.set(id, { heartbeat, since: seenSince });
    }
  }

  /** The heartbeats of those that are alive, by id. */
  alive(now: number): ReadonlyMap<string, string> {
    const alive = [...this.#sights].flatMap(([id, { heartbeat, since }]) =>
      heartbeat === undefined || now - since >= GONE_AFTER_MS ? [] : [[id, heartbeat] as const],
    );
    return new Map(alive);
  }

  /** Those that are still listed although they ended long ago. */
  forgotten(now: number): string[] {
    return [...this.#sights].filter(([, { since }]) => now - since >= FORGOTTEN_AFTER_MS).map(([id]) => id);
  }
}
