import { formatDuration } from '../../format.js';
import { html, type Html } from '../html.js';
import type { LedgerObservation } from '../pulse/account-watch.js';
import { findSender } from '../pulse/judge-pulse.js';
import { tableCell } from '../table-cell.js';
import { WORKER_SILENT_AFTER_MS, type ObservedWorker } from '../pulse/worker-lives.js';

/** Every worker process, with its role and the reason for it. */
export function workersSection(ledger: LedgerObservation): Html {
  const { workers, wallNow } = ledger;
  const sender = findSender(ledger);
  return html`<section class="list" aria-labelledby="workers-title">
    <h2 id="workers-title">Workers</h2>
    ${
      workers.length === 0
        ? html`<p class="card calm">No worker process has reported.</p>`
        : html`<table class="workers payouts">
            <caption class="unseen">
              Worker processes
            </caption>
            <thead>
              <tr>
                <th scope="col">Process</th>
                <th scope="col">Role</th>
                <th scope="col">Why</th>
                <th scope="col">Version</th>
                <th scope="col" class="number">Running for</th>
              </tr>
            </thead>
            <tbody>
              ${workers.map((worker) => workerRow(worker, worker === sender, ledger, wallNow))}
            </tbody>
          </table>`
    }
  </section>`;
}

function workerRow(worker: ObservedWorker, holdsLease: boolean, { life }: LedgerObservation, wallNow: number): Html {
  const isSilent = holdsLease ? life.kind === 'silent' : worker.silentMs > WORKER_SILENT_AFTER_MS;
  const badge = isSilent ? 'bad' : ROLE_TONES[worker.role];
  const why = isSilent ? `no sign of life for ${formatDuration(worker.silentMs)}` : describeRole(worker, holdsLease);
  const role = html`<span class="badge tone-${badge ?? 'muted'}">${isSilent ? 'silent' : worker.role}</span>`;
  return html`<tr data-key="${worker.name}">
    <th scope="row" class="id mono">${worker.name}</th>
    ${tableCell('Role', 'state', role)} ${tableCell('Why', 'last-message', html`<bdi>${why}</bdi>`)}
    ${tableCell('Version', '', worker.version)}
    ${tableCell('Running for', 'number', formatDuration(Math.max(0, wallNow - worker.startedAt)))}
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
