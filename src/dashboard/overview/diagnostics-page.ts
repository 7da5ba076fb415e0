import type { RequestHandler } from 'express';
import { formatAmount, formatCount, formatDuration } from '../../base/format.js';
import { type AccountStats, readAccountStats } from '../../ledger/reads/account-stats.js';
import { findSender } from '../../operator/account-headline.js';
import {
  type AccountPoller,
  type LedgerObservation,
  type Observation,
  type ObservedWorker,
  WORKER_SILENT_AFTER_MS,
} from '../../operator/account-poller.js';
import { formatCommand } from '../../operator/next-steps.js';
import { html, type Html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { commandLine, dataList, heading, table, tableCell } from '../layout/pieces.js';
import type { PageContext } from '../page-context.js';

/** Worker processes report every few seconds. */
const REFRESH_MS = 5_000;

/** What someone needs who looks for a fault: processes, queues, and Bull Board. */
export function createDiagnostics(watch: AccountPoller, context: PageContext): RequestHandler {
  return async (request, response) => {
    const [observation, stats] = await Promise.all([watch.visitSender(), readAccountStats(context.connection)]);
    response.send(diagnosticsPage(context.site(request), observation, stats));
  };
}

function diagnosticsPage(site: Site, { ledger }: Observation, stats: AccountStats): string {
  const { sends, withoutJob, outboxUnreadable, journals } = stats;
  return layout(
    site,
    { title: 'Diagnostics', current: 'diagnostics', refreshMs: REFRESH_MS },
    html`${heading('Diagnostics', 'processes and queues, for someone who looks for a fault')}
      ${ledger === undefined ? undefined : workersSection(ledger)}
      <section class="card">
        <h2>Check everything</h2>
        <p class="quiet">Run this on the worker’s host: it checks settings, Redis, gateway, keys, clock and journal.</p>
        ${commandLine(formatCommand({ name: 'doctor', args: [] }, site.platformId))}
      </section>
      <section class="card">
        <h2>Queues</h2>
        ${dataList([
          ['Sends begun', formatAmount(sends)],
          [
            'Waiting for a job',
            withoutJob === 0 ? 'none' : `${formatCount(withoutJob, 'payout')}; a running worker adds it within seconds`,
          ],
          [
            'Unknown entries',
            outboxUnreadable === 0 ? undefined : `${formatAmount(outboxUnreadable)} in the outbox, of a newer version`,
          ],
          [
            'Send journals',
            journals.map(({ host, dir, journalId }) => `${host}:${dir} (${journalId})`).join(', ') || 'none',
          ],
        ])}
        <p>
          <a href="${site.base}/board/">Bull Board</a> shows the jobs in BullMQ’s queues, read-only. The payouts on the
          other pages are what counts: a job only wakes the worker.
        </p>
      </section>`,
  );
}

function workersSection(ledger: LedgerObservation): Html {
  const { workers, wallNow } = ledger;
  const sender = findSender(ledger);
  return html`<section class="list" aria-labelledby="workers-title">
    <h2 id="workers-title">Workers</h2>
    ${
      workers.length === 0
        ? html`<p class="card quiet">No worker process has reported.</p>`
        : table(
            'Worker processes',
            ['Process', 'Role', 'Why', 'Version', '#Running for'],
            workers.map((worker) => workerRow(worker, worker === sender, ledger, wallNow)),
          )
    }
  </section>`;
}

function workerRow(worker: ObservedWorker, holdsLease: boolean, { life }: LedgerObservation, wallNow: number): Html {
  const isSilent = holdsLease ? life.kind === 'silent' : worker.silentMs > WORKER_SILENT_AFTER_MS;
  const badge = isSilent ? 'bad' : ROLE_TONES[worker.role];
  const why = isSilent ? `no sign of life for ${formatDuration(worker.silentMs)}` : describeRole(worker, holdsLease);
  const role = html`<span class="badge tone-${badge ?? 'muted'}">${isSilent ? 'silent' : worker.role}</span>`;
  return html`<tr data-key="${worker.name}">
    <th scope="row" class="mono">${worker.name}</th>
    ${tableCell('', role)} ${tableCell('wraps', html`<bdi>${why}</bdi>`)} ${tableCell('', worker.version)}
    ${tableCell('number', formatDuration(Math.max(0, wallNow - worker.startedAt)))}
  </tr>`;
}

const ROLE_TONES: Readonly<Record<string, string>> = { sender: 'good', standby: 'active', refused: 'bad' };

function describeRole({ role, reason, lastError, pollError }: ObservedWorker, holdsLease: boolean): string {
  if (reason !== undefined) return reason;
  if (lastError !== undefined) return `its last attempt failed: ${lastError}`;
  if (pollError !== undefined) return `its last status poll failed: ${pollError}`;
  if (role === 'standby') return 'takes over when the sender ends';
  return holdsLease ? 'holds the sender lease' : '–';
}
