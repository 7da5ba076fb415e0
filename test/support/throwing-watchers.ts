import type { Telemetry } from 'bullmq';
import type { Logger } from '../../src/base/logger.js';
import type { WorkerObserver } from '../../src/worker/sender/worker-observer.js';

/** What an application may hand in, at its worst: everything that is called throws. */

function fail(): never {
  throw new Error('ENOSPC: no space left on device, write');
}

export const throwingLogger: Logger = { debug: fail, info: fail, warn: fail, error: fail, child: fail };

export const loggerWithThrowingChildren: Logger = { ...throwingLogger, child: () => loggerWithThrowingChildren };

export const throwingObserver: WorkerObserver = {
  sent: fail,
  notSent: fail,
  sendGap: fail,
  pacerWaited: fail,
  journalSynced: fail,
  polled: fail,
  signatureRefused: fail,
  receiptFailed: fail,
  jobsRecreated: fail,
  jobWorkerReplaced: fail,
  reached: fail,
};

export const throwingTelemetry: Telemetry = {
  tracer: { startSpan: fail },
  contextManager: { with: fail, active: fail, root: fail, getMetadata: fail, fromMetadata: fail },
  meter: { createCounter: fail, createHistogram: fail, createGauge: fail },
};
