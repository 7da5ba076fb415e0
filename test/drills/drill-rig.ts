import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { Arrival, Payment } from '../../src/sandbox/sandbox-account.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { Rig, ROGUE, untilAnswer } from '../told/rig.js';
import { cents, numbered } from '../support/account.js';

const RUNBOOKS = new URL('../../docs/runbooks/', import.meta.url);

/** In CSS pixels, of a usual phone. */
const PHONE = { width: 390, height: 844 };

const NOTHING = { tone: '', headline: '', title: '', text: '', runbook: '', belowFold: '', isCut: false };

/** In the browser. */
const READ_PULSE = `
  const pulse = document.querySelector('.pulse');
  ({
    tone: pulse?.className.replace('pulse ', '') ?? '',
    headline: document.querySelector('.pulse h1')?.textContent ?? '',
    title: document.title,
    text: pulse?.textContent ?? '',
    runbook: pulse?.querySelector('a[href*="runbooks/"]')?.getAttribute('href') ?? '',
    belowFold: ['h1', '.command', 'a[href*="runbooks/"]']
      .filter((part) => (pulse?.querySelector(part)?.getBoundingClientRect().bottom ?? 0) > innerHeight)
      .join(', '),
    isCut: document.documentElement.scrollWidth > innerWidth,
  })`;

/** A healthy account with a dashboard that a browser has open. */
export class DrillRig extends Rig {
  readonly #earlier: { arrivals: Arrival[]; payments: Payment[] } = { arrivals: [], payments: [] };
  #page: Page | undefined;
  readonly expected = new Set<string>();

  async openPage(browser: Browser) {
    const port = await this.startExporter('dashboard');
    this.#page = await browser.newPage({ viewport: PHONE, colorScheme: 'dark' });
    this.#page.setDefaultTimeout(60_000);
    await this.#page.goto(`http://127.0.0.1:${port}/overview`);
  }

  /** What the dashboard itself serves there: the runbook of its own version. */
  async readRunbook(href: string) {
    const response = await fetch(new URL(href, this.#page?.url()));
    expect(response.status).toBe(200);
    return response.text();
  }

  /** For people: into the folder DRILL_PICTURES, if it is set. */
  async photograph(name: string, words: string) {
    const folder = process.env['DRILL_PICTURES'];
    if (folder === undefined) return;
    await this.#page?.screenshot({ path: join(folder, `${name.replaceAll(/\W+/g, '-')}.png`) });
    await appendFile(join(folder, 'drills.txt'), `${name} | ${words}\n`);
  }

  async enqueue(count: number, prefix: string, batch?: string) {
    const payouts = cents(numbered(count, prefix));
    await this.world.producer.enqueueMany(payouts.map((payout) => ({ ...payout, ...(batch && { batch }) })));
    for (const { payoutId } of payouts) this.expected.add(payoutId);
  }

  get arrivals() {
    return [...this.#earlier.arrivals, ...this.world.sandbox.arrivals()];
  }

  get payments() {
    return [...this.#earlier.payments, ...this.world.sandbox.payments()];
  }

  async untilSent(more: number) {
    const count = this.arrivals.length + more;
    await until(`${more} more payouts arrive`, () => this.arrivals.length >= count);
  }

  /** The sandbox begins again for that, once nothing is on its way. */
  async topUp() {
    const { sandbox, producer } = this.world;
    await until('nothing is in progress', async () => (await producer.stats()).in_progress === 0);
    this.#earlier.arrivals.push(...sandbox.arrivals());
    this.#earlier.payments.push(...sandbox.payments());
    sandbox.reset();
  }

  async read() {
    return (await this.#page?.evaluate<typeof NOTHING>(READ_PULSE)) ?? NOTHING;
  }

  /** Waits until the page, which nobody reloads, shows it. @returns the seconds since then */
  async untilShown(tone: string, headline: string, since = performance.now()) {
    await untilAnswer(
      `the page shows ${tone} ${headline}`,
      async () => this.read(),
      (shown) => shown.tone === tone && shown.headline === headline && shown.title.includes(headline),
      90_000,
    );
    return (performance.now() - since) / 1_000;
  }

  /** `payouts status`, `payouts doctor` and `/readyz` of each worker that responds say it too. */
  async expectSameWords(headline: string) {
    const first = `Account ${this.platformId}: ${headline}`;
    const say = async (who: string, words: string, ask: () => Promise<string>) =>
      untilAnswer(`${who} says ${words}`, ask, (said) => said === words, 45_000);
    await Promise.all([
      ...['status', 'doctor'].map(async (command) =>
        say(command, first, async () => (await this.run([command])).stdout.split('\n')[0] ?? ''),
      ),
      ...this.workers.map(async (worker) =>
        say('/readyz', headline, async () => {
          const { status, body } = await this.readyz(worker);
          if (status === 0) return headline;
          const { accounts } = JSON.parse(body) as { accounts: { headline?: string }[] };
          return accounts[0]?.headline ?? 'no headline';
        }),
      ),
    ]);
  }

  async run(args: readonly string[]) {
    return runCli(args, { env: this.commandEnvironment });
  }

  /** Runs a command as a runbook has it. @param values - what an operator puts in place of parts of it */
  async follow(runbook: string, ...[command, ...how]: Parameters<DrillRig['runText']>) {
    expect(await readFile(new URL(`${runbook}.md`, RUNBOOKS), 'utf8')).toContain(command);
    return this.runText(command, ...how);
  }

  async untilFollowed(...command: Parameters<DrillRig['follow']>) {
    const endsWell = async () => this.follow(...command);
    await until(`${command[1]} ends well`, async () => (await endsWell().catch(() => undefined)) !== undefined);
  }

  async runText(command: string, values: Readonly<Record<string, string>> = {}, codes: readonly number[] = [0]) {
    let filled = command;
    for (const [word, value] of Object.entries({ WHY: 'drill', ...values })) filled = filled.replaceAll(word, value);
    const words = [...filled.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)];
    const [program, ...args] = words.map(([, double, single, bare]) => double ?? single ?? bare ?? '');
    expect(program).toBe('payouts');
    const { code, stdout, stderr } = await this.run(args);
    if (codes.includes(code ?? -1)) return stdout;
    throw new Error(`${filled} ended with ${String(code)}:\n${stdout}${stderr}`);
  }

  /** The first command of a runbook, as the index has it, shows what is wrong. */
  async expectFound(command: string, what: string) {
    const [program, ...args] = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(
      ([, quoted, bare]) => quoted ?? bare ?? '',
    );
    expect(program).toBe('payouts');
    const { stdout, stderr } = await this.run(args);
    expect(`${stdout}${stderr}`).toContain(what);
  }

  /** Decides each unknown payout as unknown.md says, by the gateway's records. */
  async resolveUnknown() {
    const { payouts } = await this.world.producer.list({ state: 'unknown' });
    for (const { payoutId, addressTo, attempt } of payouts) {
      const paid = this.payments.find((payment) => payment.addressTo === addressTo);
      const how = paid ? '--sent --gateway-id H' : '--not-sent --attempt N';
      const values = { ID: payoutId, 'attempt N': `attempt ${attempt}`, ' H ': ` ${paid?.txhash ?? ''} ` };
      await this.untilFollowed('unknown', `payouts resolve ID ${how} --reason WHY`, values);
    }
  }

  /** Everything that has to be is paid, once, no two sends within a second, and the page is green. */
  async expectRecovery() {
    const { producer } = this.world;
    await this.enqueue(2, 'after');
    const isPaid = async (payoutId: string) =>
      (await producer.get(payoutId).catch(() => undefined))?.state === 'completed';
    const allArePaid = async () => {
      if ((await producer.stats().catch(() => undefined))?.unknown) await this.resolveUnknown();
      return (await Promise.all([...this.expected].map(isPaid))).every(Boolean);
    };
    await until('all is paid', allArePaid, 120_000);
    const paid = this.payments.flatMap(({ addressTo }) => (addressTo === ROGUE ? [] : [addressTo]));
    expect(paid.sort()).toEqual(
      cents([...this.expected])
        .map(({ addressTo }) => addressTo)
        .sort(),
    );
    const own = this.arrivals.filter(({ addressTo }) => addressTo !== ROGUE);
    const gaps = own.slice(1).map(({ atMs }, index) => atMs - (own[index]?.atMs ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
    await this.untilShown('good', 'Idle');
  }

  override async close() {
    await this.#page?.close();
    await super.close();
  }
}
