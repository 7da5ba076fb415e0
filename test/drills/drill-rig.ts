import { readFile } from 'node:fs/promises';
import { loadavg, availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { AccountSummary } from '../../src/operator/account-summary.js';
import type { Arrival, Payment } from '../../src/sandbox/sandbox-account.js';
import { startTcpProxy, type TcpProxy } from '../dashboard/support/tcp-proxy.js';
import { runCli, type CliResult } from '../support/cli.js';
import { until } from '../support/until.js';
import { judgeAlerts } from '../told/support/firing-alerts.js';
import { Rig, type RigOptions } from '../told/support/rig.js';
import { extrapolate, type Snapshot } from '../told/support/series.js';

const RUNBOOKS = new URL('../../docs/runbooks/', import.meta.url);

/** What the open page shows. */
export interface Shown {
  readonly tone: string;
  readonly headline: string;
  readonly title: string;
  /** All of the pulse, with its links. */
  readonly markup: string;
  readonly text: string;
}

const NOTHING: Shown = { tone: '', headline: '', title: '', markup: '', text: '' };

const MOST = 5;

/** For this much more time, everything may take: other work on the machine slows browser, worker and commands. */
export function loadFactor(): number {
  return Math.min(MOST, Math.max(1, (loadavg()[0] ?? 0) / availableParallelism()));
}

/** A healthy account with a dashboard that a browser has open, behind a gateway that can be cut off. */
export class DrillRig {
  readonly rig: Rig;
  readonly gateway: TcpProxy;
  /** What the gateway recorded before it was set up again. */
  readonly #earlier: { arrivals: Arrival[]; payments: Payment[] } = { arrivals: [], payments: [] };
  #page: Page | undefined;
  readonly #expected = new Set<string>();
  /** Addresses that others paid. */
  readonly foreign = new Set<string>();

  private constructor(rig: Rig, gateway: TcpProxy) {
    this.rig = rig;
    this.gateway = gateway;
  }

  static async open(options: RigOptions): Promise<DrillRig> {
    const rig = await Rig.open(options);
    const gateway = await startTcpProxy(rig.world.sandbox.port);
    rig.gatewayUrl = `http://127.0.0.1:${gateway.port}`;
    return new DrillRig(rig, gateway);
  }

  /** Opens the dashboard in the browser. `payouts notify` runs beside it: the alerts are those of all processes. */
  async openPage(browser: Browser): Promise<void> {
    const [{ port }] = await Promise.all([this.rig.startExporter('dashboard'), this.rig.startExporter('notify')]);
    this.#page = await browser.newPage();
    this.#page.setDefaultTimeout(60_000);
    await this.#page.goto(`http://127.0.0.1:${port}/payouts`);
  }

  /** Enqueues payouts of 0.01 that have to be paid once. */
  async enqueue(count: number, prefix: string, batch?: string): Promise<void> {
    const payouts = Array.from({ length: count }, (_, index) => `${prefix}-${index + 1}`);
    await this.rig.world.producer.enqueueMany(
      payouts.map((payoutId) => ({ ...paymentOf(payoutId), ...(batch && { batch }) })),
    );
    for (const payoutId of payouts) this.#expected.add(payoutId);
  }

  /** It is not to be paid any more. */
  forget(payoutId: string): void {
    this.#expected.delete(payoutId);
  }

  get arrivals(): readonly Arrival[] {
    return [...this.#earlier.arrivals, ...this.rig.world.sandbox.arrivals()];
  }

  get payments(): readonly Payment[] {
    return [...this.#earlier.payments, ...this.rig.world.sandbox.payments()];
  }

  async untilSent(more: number): Promise<void> {
    const count = this.arrivals.length + more;
    await until(`${more} more payouts arrive`, () => this.arrivals.length >= count);
  }

  /** Tops the account up. The sandbox begins again for that, once nothing is on its way. */
  async topUp(): Promise<void> {
    const { sandbox, producer } = this.rig.world;
    await until('nothing is in progress', async () => (await producer.stats()).in_progress === 0);
    this.#earlier.arrivals.push(...sandbox.arrivals());
    this.#earlier.payments.push(...sandbox.payments());
    sandbox.reset();
  }

  async read(): Promise<Shown> {
    return (await this.#page?.evaluate(readPulse)) ?? NOTHING;
  }

  /** Waits until the page, which nobody reloads, shows it. @returns the seconds since then */
  async untilShown(tone: string, headline: string, since = performance.now()): Promise<number> {
    let shown = NOTHING;
    await until(
      () => `the page shows ${tone} ${headline}, but it is ${JSON.stringify(shown)}`,
      async () => {
        shown = await this.read();
        return shown.tone === tone && shown.headline === headline;
      },
      90_000,
    );
    const seconds = (performance.now() - since) / 1_000;
    expect(shown.title).toContain(headline);
    return seconds;
  }

  /** `payouts status`, `payouts doctor` and `/readyz` of each worker that responds say it too. */
  async expectSameWords(headline: string): Promise<void> {
    const first = `Account ${this.rig.platformId}: ${headline}`;
    const lineOf = async (command: string): Promise<string> => (await this.run([command])).stdout.split('\n')[0] ?? '';
    await Promise.all([
      ...['status', 'doctor'].map(async (command) => expectSaid(command, first, async () => lineOf(command))),
      ...this.rig.workers.map(async (worker) => {
        const said = async (): Promise<string> => {
          const { status, body } = await this.rig.readyz(worker);
          return status === 0 ? headline : headlineOf(body);
        };
        return expectSaid('/readyz', headline, said);
      }),
    ]);
  }

  async run(args: readonly string[]): Promise<CliResult> {
    return runCli(args, { env: this.rig.commandEnvironment });
  }

  /**
   * Runs a command as a runbook has it.
   * @param values - what an operator puts in place of parts of it
   */
  async follow(
    runbook: string,
    command: string,
    values: Readonly<Record<string, string>> = {},
    codes: readonly number[] = [0],
  ): Promise<CliResult> {
    const page = await readFile(new URL(`${runbook}.md`, RUNBOOKS), 'utf8');
    expect(page).toContain(command);
    return this.runText(command, values, codes);
  }

  /** Runs a command that a page or `payouts status` shows. */
  async runText(
    command: string,
    values: Readonly<Record<string, string>> = {},
    codes: readonly number[] = [0],
  ): Promise<CliResult> {
    const filled = Object.entries({ WHY: 'drill', ...values }).reduce(
      (text, [word, value]) => text.replaceAll(word, value),
      command,
    );
    const [program, ...args] = [...filled.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
      ([, double, single, bare]) => double ?? single ?? bare ?? '',
    );
    expect(program).toBe('payouts');
    const result = await this.run(args);
    if (!codes.includes(result.code ?? -1))
      throw new Error(`${filled} ended with ${String(result.code)}:\n${result.stdout}${result.stderr}`);
    return result;
  }

  async status(): Promise<AccountSummary> {
    const { stdout } = await this.run(['status', '--json']);
    return JSON.parse(stdout) as AccountSummary;
  }

  /** Decides each unknown payout as unknown.md says, by the gateway's records. */
  async resolveUnknown(): Promise<void> {
    const { payouts } = await this.rig.world.producer.list({ state: 'unknown' });
    for (const { payoutId, addressTo } of payouts) {
      const paid = this.payments.find((payment) => payment.addressTo === addressTo);
      const command = paid
        ? 'payouts resolve ID --sent --txhash H --reason WHY'
        : 'payouts resolve ID --not-sent --reason WHY';
      await until(`${payoutId} is resolved`, async () =>
        this.follow('unknown', command, { ID: payoutId, ' H ': ` ${paid?.txhash ?? ''} ` }).then(
          () => true,
          () => false,
        ),
      );
    }
  }

  /**
   * Exactly these alerts fire if nobody acts for an hour.
   * @param idle - of the healthy account, before anything waited
   * @param start - right before the fault
   * @param also - may fire too
   */
  async expectAlerts(
    { idle, start }: { readonly idle: Snapshot; readonly start: Snapshot },
    { alerts, also = [], repeats }: ExpectedAlerts,
  ): Promise<void> {
    const deadline = performance.now() + 60_000;
    let trouble: string | undefined;
    do {
      const lately = await this.rig.scrape();
      await delay(2_000);
      const series = extrapolate({ before: idle, since: repeats ? start : lately, now: await this.rig.scrape() }, 60);
      trouble = await judgeAlerts(series, 60, alerts, [...OF_THE_MACHINE, ...also]);
      if (trouble === undefined) return;
    } while (performance.now() < deadline);
    expect(trouble).toBeUndefined();
  }

  /** Everything that has to be is paid, once, no two sends within a second, and the page is green. */
  async expectRecovery(): Promise<void> {
    const { producer } = this.rig.world;
    await this.enqueue(2, 'after');
    await until(
      'all is paid',
      async () => {
        if ((await producer.stats().catch(() => undefined))?.unknown) await this.resolveUnknown();
        const left = await Promise.all(
          [...this.#expected].map(async (payoutId) => producer.get(payoutId).catch(() => undefined)),
        );
        return left.every((payout) => payout?.state === 'completed');
      },
      120_000,
    );
    const paid = this.payments.map(({ addressTo }) => addressTo).filter((address) => !this.foreign.has(address));
    expect(paid.sort()).toEqual([...this.#expected].map((payoutId) => paymentOf(payoutId).addressTo).sort());
    const own = this.arrivals.filter(({ addressTo }) => !this.foreign.has(addressTo ?? ''));
    const gaps = own.slice(1).map(({ atMs }, index) => atMs - (own[index]?.atMs ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
    await this.untilShown('good', 'Idle');
  }

  async close(): Promise<void> {
    await this.#page?.close();
    await this.gateway.close().catch(() => undefined);
    await this.rig.close();
  }
}

export interface ExpectedAlerts {
  readonly alerts: readonly string[];
  /** Depend on what was on its way, or follow if nobody acts. */
  readonly also?: readonly string[];
  /** Counters go on as since the fault, not as in the last seconds. */
  readonly repeats?: true;
}

/**
 * A busy disk makes the first fire in any drill. An exporter that a busy machine keeps from reading within 3 s reports Redis
 * as down; extrapolated, it stays so.
 */
const OF_THE_MACHINE = ['PayoutsJournalSlow', 'PayoutsRedisDown'];

export function paymentOf(payoutId: string) {
  return { payoutId, paymentId: 1, amount: '0.01', addressTo: `wallet-${payoutId}xxxxxxxxxxxxxxxxxxxxxxxxxxxx` };
}

async function expectSaid(who: string, words: string, said: () => Promise<string>): Promise<void> {
  let last = '';
  const isSaid = async (): Promise<boolean> => (last = await said()) === words;
  await until(() => `${who} says ${words}, but: ${last}`, isSaid, 45_000);
}

function headlineOf(readyz: string): string {
  const { accounts } = JSON.parse(readyz) as { accounts: { headline?: string }[] };
  return accounts[0]?.headline ?? 'no headline';
}

/** In the browser. */
function readPulse(): Shown {
  const { document } = globalThis as unknown as { document: BrowserDocument };
  const pulse = document.querySelector('.pulse');
  return {
    tone: pulse?.className.replace('pulse ', '') ?? '',
    headline: document.querySelector('.pulse h1')?.textContent ?? '',
    title: document.title,
    markup: pulse?.innerHTML ?? '',
    text: pulse?.textContent ?? '',
  };
}

interface BrowserDocument {
  readonly title: string;
  querySelector(
    selector: string,
  ): { readonly className: string; readonly textContent: string; readonly innerHTML: string } | null;
}
