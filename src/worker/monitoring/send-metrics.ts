import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { TAMPERING_FAULTS } from '../../ledger/control-record.js';
import { LOOK_UP_ANSWERS } from '../../ledger/order-look-up.js';
import { STATES_WITH_JOB } from '../../ledger/states.js';
import { QUEUE_NAMES } from '../../queues/payout-queues.js';
import type { GatewayCall, WorkerObserver } from '../sender/worker-observer.js';

/** In seconds. The first bucket must stay empty: it counts gaps of a second or less between two sends. */
const GAP_BUCKETS = [1, 1.01, 1.015, 1.02, 1.03, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 60, 300];
const SEND_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120];
const WAIT_BUCKETS = [0.01, 0.1, 0.25, 0.5, 0.75, 1, 1.02, 1.05, 1.1, 1.25, 1.5, 2, 5, 10, 30, 60];
const ANSWER_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** From seconds to a week: a payout waits for its turn, an approval or the gateway. */
const REACHED_BUCKETS = [
  1, 2, 5, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 57_600, 86_400, 172_800, 604_800,
];
const SYNC_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

const SEND_OUTCOMES = ['accepted', 'rejected', 'unknown'] as const;
/** Besides faults of a signature: an earlier attempt and a resume that no operator signed. */
const TAMPERING_REASONS = [...TAMPERING_FAULTS, 'sent_before', 'resume'];
/** Why nothing was sent, by the code of the error: as the headline tells them apart. */
const CAUSES: Readonly<Record<string, string>> = { GATEWAY_UNAVAILABLE: 'gateway', JOURNAL_UNAVAILABLE: 'disk' };
const POLL_RESULTS = ['in_progress', 'completed', 'failed', 'unknown', 'error'] as const;

/** @returns a function that makes an account's observer */
export function createObserverMetrics(registry: Registry): (platformId: number) => WorkerObserver {
  const registers = [registry];
  const histogram = (name: string, help: string, buckets: number[]): Histogram<'platform_id'> =>
    new Histogram({ name, help, buckets, labelNames: ['platform_id'], registers });
  const sends = new Counter({
    name: 'payouts_sends_total',
    help: 'Withdrawals that were sent, by outcome.',
    labelNames: ['platform_id', 'outcome'],
    registers,
  });
  const notSent = new Counter({
    name: 'payouts_not_sent_total',
    help: 'Tries to send a payout that ended before anything was written, by cause (gateway, disk, other); it is tried again.',
    labelNames: ['platform_id', 'cause'],
    registers,
  });
  const polls = new Counter({
    name: 'payouts_polls_total',
    help: 'Status queries of transactions, by their result.',
    labelNames: ['platform_id', 'result'],
    registers,
  });
  const lookUps = new Counter({
    name: 'payouts_look_ups_total',
    help: 'Unknown payouts that the gateway was asked for by order id, by its answer.',
    labelNames: ['platform_id', 'answer'],
    registers,
  });
  const refusals = new Counter({
    name: 'payouts_signature_failures_total',
    help: 'Payouts held, and resumes refused, since no valid signature allows them, by reason.',
    labelNames: ['platform_id', 'reason', 'tampering'],
    registers,
  });
  const receiptFailures = new Counter({
    name: 'payouts_receipts_failed_total',
    help: 'Payments that ended without a receipt, because the signer gave no signature.',
    labelNames: ['platform_id'],
    registers,
  });
  const recreatedJobs = new Counter({
    name: 'payouts_jobs_recreated_total',
    help: 'Jobs that were missing from a queue in Redis and were added again, by the state of their payouts.',
    labelNames: ['platform_id', 'state'],
    registers,
  });
  const replacedWorkers = new Counter({
    name: 'payouts_job_workers_replaced_total',
    help: 'BullMQ workers that hung although there were jobs to run, and were replaced.',
    labelNames: ['platform_id', 'queue'],
    registers,
  });
  const sendDuration = histogram(
    'payouts_send_duration_seconds',
    'From the first byte of a withdrawal to its response, or to its time limit.',
    SEND_BUCKETS,
  );
  const sendGap = histogram(
    'payouts_send_gap_seconds',
    'Between the first bytes of two withdrawals of this process.',
    GAP_BUCKETS,
  );
  const pacerWait = histogram(
    'payouts_pacer_wait_seconds',
    'How long a payout waited for its slot and its connection.',
    WAIT_BUCKETS,
  );
  const journalSync = histogram(
    'payouts_journal_sync_seconds',
    'How long a line of the send journal took to be on disk.',
    SYNC_BUCKETS,
  );
  const reached = {
    sent: histogram(
      'payouts_enqueue_to_sent_seconds',
      'From when a payout could have been sent, enqueued or at its `notBefore`, until the gateway accepted it.',
      REACHED_BUCKETS,
    ),
    completed: histogram(
      'payouts_enqueue_to_completed_seconds',
      'From when a payout could have been sent, enqueued or at its `notBefore`, until a poll found it paid.',
      REACHED_BUCKETS,
    ),
  };
  const gateway = createGatewayMetrics(registry);

  return (platformId) => {
    const account = { platform_id: String(platformId) };
    // Prometheus sees no increase in a series that begins at 1, so every series starts at 0.
    for (const outcome of SEND_OUTCOMES) sends.inc({ ...account, outcome }, 0);
    for (const cause of ['gateway', 'disk', 'other']) notSent.inc({ ...account, cause }, 0);
    for (const result of POLL_RESULTS) polls.inc({ ...account, result }, 0);
    for (const answer of LOOK_UP_ANSWERS) lookUps.inc({ ...account, answer }, 0);
    for (const reason of TAMPERING_REASONS) refusals.inc({ ...account, reason, tampering: 'true' }, 0);
    receiptFailures.inc(account, 0);
    for (const state of STATES_WITH_JOB) recreatedJobs.inc({ ...account, state }, 0);
    for (const queue of Object.values(QUEUE_NAMES)) replacedWorkers.inc({ ...account, queue }, 0);
    gateway.begin(account.platform_id);
    for (const each of [sendDuration, sendGap, pacerWait, journalSync, ...Object.values(reached)]) each.zero(account);
    return {
      gatewayCalled: (call) => {
        gateway.called(account.platform_id, call);
      },
      sent(outcome, durationMs) {
        sends.inc({ ...account, outcome });
        sendDuration.observe(account, durationMs / 1_000);
      },
      reached(state, afterMs) {
        reached[state].observe(account, afterMs / 1_000);
      },
      notSent(_reason, _retryInMs, code) {
        notSent.inc({ ...account, cause: CAUSES[code ?? ''] ?? 'other' });
      },
      sendGap(gapMs) {
        sendGap.observe(account, gapMs / 1_000);
      },
      pacerWaited(waitedMs) {
        pacerWait.observe(account, waitedMs / 1_000);
      },
      journalSynced(durationMs) {
        journalSync.observe(account, durationMs / 1_000);
      },
      polled(result) {
        polls.inc({ ...account, result });
      },
      lookedUp(answer) {
        lookUps.inc({ ...account, answer });
      },
      signatureRefused(reason, isTampering) {
        refusals.inc({ ...account, reason, tampering: String(isTampering) });
      },
      receiptFailed() {
        receiptFailures.inc(account);
      },
      jobsRecreated(state, count) {
        recreatedJobs.inc({ ...account, state }, count);
      },
      jobWorkerReplaced(queue) {
        replacedWorkers.inc({ ...account, queue });
      },
    };
  };
}

const ENDPOINTS = ['withdraw', 'transactionstatus', 'currencies', 'balance'] as const;
const OUTCOMES = ['answered', 'rejected', 'unavailable', 'invalid', 'not_sent'] as const;

/** By endpoint, each with few outcomes. A failed request is observed too: a time-out is a slow answer. */
function createGatewayMetrics(registry: Registry) {
  const registers = [registry];
  const labelNames = ['platform_id', 'endpoint'] as const;
  const open = new Map<GatewayCall, { readonly labels: Record<(typeof labelNames)[number], string>; at: number }>();
  const requests = new Counter({
    name: 'payouts_gateway_requests_total',
    help: 'Requests to the gateway that ended: answered, rejected, unavailable (no response to trust), invalid or not_sent.',
    labelNames: [...labelNames, 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'payouts_gateway_request_seconds',
    help: 'From the begin of a request to the gateway to its end, also if no response came.',
    buckets: ANSWER_BUCKETS,
    labelNames,
    registers,
  });
  new Gauge({
    name: 'payouts_gateway_oldest_open_seconds',
    help: 'For how long the oldest open request has waited for the gateway; absent if none is open.',
    labelNames,
    registers,
    collect() {
      this.reset();
      // The oldest of an endpoint is set last.
      for (const { labels, at } of [...open.values()].reverse()) this.set(labels, (performance.now() - at) / 1_000);
    },
  });
  return {
    /** Each series starts at 0. */
    begin(platformId: string): void {
      for (const endpoint of ENDPOINTS) {
        duration.zero({ platform_id: platformId, endpoint });
        for (const outcome of OUTCOMES) requests.inc({ platform_id: platformId, endpoint, outcome }, 0);
      }
    },
    called(platformId: string, call: GatewayCall): void {
      const labels = { platform_id: platformId, endpoint: call.endpoint };
      if (call.end === undefined) {
        open.set(call, { labels, at: performance.now() });
        return;
      }
      open.delete(call);
      requests.inc({ ...labels, outcome: call.end.outcome });
      if (call.end.outcome !== 'not_sent') duration.observe(labels, call.end.durationMs / 1_000);
    },
  };
}
