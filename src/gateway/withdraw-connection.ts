import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import { describeFailure } from './describe-failure.js';
import { exchangeOnce, type Exchange } from './exchange-once.js';
import { GuardedSocket } from './guarded-socket.js';
import type { OpenSocket } from './open-socket.js';
import type { RequestSigner } from './request-signer.js';
import { withdrawRequestSchema } from './schemas.js';
import { classifyWithdrawAnswer, differingFields } from './classify-withdraw-response.js';
import type { WithdrawConnection, WithdrawOutcome, WithdrawRequest } from './withdraw-gateway.js';

export interface WithdrawCallOptions {
  /** Of the endpoint. */
  readonly url: string;
  readonly sign: RequestSigner;
  readonly withdrawTimeoutMs: number;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Makes a connected socket into a connection for one withdraw. */
export function createWithdrawConnection(openSocket: OpenSocket, options: WithdrawCallOptions): WithdrawConnection {
  const socket = new GuardedSocket(openSocket);
  let used = false;
  return {
    get usable() {
      return !used && socket.usable;
    },
    async withdraw(request, { mayWrite }) {
      if (used) return { kind: 'not_sent', reason: 'this connection was already used' };
      used = true;
      try {
        return await withdrawOnce(socket, request, mayWrite, options);
      } catch (error) {
        // A defect: even then the socket knows whether anything was sent.
        const reason = `unexpected: ${describeFailure(error)}`;
        return socket.written ? { kind: 'unknown', reason, durationMs: 0 } : { kind: 'not_sent', reason };
      } finally {
        socket.destroy();
      }
    },
    close() {
      // A withdraw that is under way owns the socket: cutting it off would lose its answer.
      if (!used) socket.destroy();
      used = true;
    },
  };
}

async function withdrawOnce(
  socket: GuardedSocket,
  request: WithdrawRequest,
  mayWrite: () => boolean,
  { url, sign, withdrawTimeoutMs, logger, clock }: WithdrawCallOptions,
): Promise<WithdrawOutcome> {
  const checked = withdrawRequestSchema.safeParse(request);
  if (!checked.success) {
    // Only the names: an outcome's reason is logged, and the values hold an address.
    const fields = checked.error.issues.map((issue) => issue.path.join('.') || 'request');
    return { kind: 'not_sent', reason: `the request breaks the gateway's rules for ${fields.join(', ')}` };
  }
  const { body, redact } = sign('withdraw', checked.data);
  const exchange = await exchangeOnce(socket, { url, body, timeoutMs: withdrawTimeoutMs, mayWrite, clock });
  const finding = classify(exchange, checked.data, redact);
  // Only now that the outcome stands: whatever becomes of the log lines, the answer counts.
  logCall(logger.child({ requestId: randomUUID(), endpoint: 'withdraw' }), exchange, finding);
  return finding.outcome;
}

interface Finding {
  readonly outcome: WithdrawOutcome;
  /** The fields in which the answer to an accepted withdraw differs from the request. */
  readonly differing: readonly string[];
}

function classify(exchange: Exchange, request: WithdrawRequest, redact: (text: string) => string): Finding {
  if (exchange.kind === 'not_sent') return { outcome: exchange, differing: [] };
  if (exchange.kind === 'lost') return { outcome: { ...exchange, kind: 'unknown' }, differing: [] };

  const { answer, durationMs } = exchange;
  const { status: httpStatus } = answer;
  const verdict = classifyWithdrawAnswer(answer);
  switch (verdict.kind) {
    case 'accepted':
      // The money is on its way whatever the answer repeats, so a difference changes no outcome.
      return {
        outcome: { kind: 'accepted', txhash: verdict.txhash, durationMs },
        differing: differingFields(verdict.fields, request),
      };
    case 'rejected':
      return { outcome: { kind: 'rejected', message: redact(verdict.message), httpStatus, durationMs }, differing: [] };
    case 'unknown':
      return { outcome: { kind: 'unknown', reason: redact(verdict.reason), httpStatus, durationMs }, differing: [] };
  }
}

function logCall(log: Logger, exchange: Exchange, { outcome, differing }: Finding): void {
  if (differing.length > 0) log.warn({ differing }, 'the gateway accepted a withdraw but repeated it differently');
  log.info({ ...callFields(exchange), outcome: outcome.kind, ...reasonOf(outcome) }, 'withdraw called');
}

function callFields(exchange: Exchange): object {
  if (exchange.kind === 'not_sent') return {};
  const durationMs = Math.round(exchange.durationMs);
  return exchange.kind === 'answered' ? { httpStatus: exchange.answer.status, durationMs } : { durationMs };
}

function reasonOf(outcome: WithdrawOutcome): object {
  if (outcome.kind === 'accepted') return {};
  return { reason: outcome.kind === 'rejected' ? outcome.message : outcome.reason };
}
