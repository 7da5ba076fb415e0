import { randomUUID } from 'node:crypto';
import type { Logger } from '../../base/logger.js';
import {
  describeFailure,
  type SentOutcome,
  type WithdrawConnection,
  type WithdrawOptions,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../gateway.js';
import { noteHttpStatus } from '../http-status.js';
import { exchangeOnce, type Exchange, type GatewayAccess, type SignedRequest } from './exchange-once.js';
import type { RawResponse } from './responses.js';
import { GuardedSocket, type OpenSocket } from './socket.js';

/** A withdrawal in the words of one API. */
export interface WithdrawDialect {
  /** Below the gateway's address. */
  readonly path: string;
  /** @returns names of fields that break a rule: the values, which include an address, must not be logged */
  prepare(request: WithdrawRequest, orderId?: string): PreparedWithdrawal | { readonly wrong: readonly string[] };
}

/** A signed withdrawal, and what a response to it means. */
export interface PreparedWithdrawal extends SignedRequest {
  /** Never throws. */
  readonly classify: (response: RawResponse) => WithdrawClassification;
}

/** What a response to a withdrawal means. */
export interface WithdrawClassification {
  readonly outcome: SentOutcome;
  /** The API's names of fields in which an acceptance differs from the request. */
  readonly differing: readonly string[];
}

type WithdrawAccess = Pick<GatewayAccess, 'baseUrl' | 'withdrawTimeoutMs' | 'logger' | 'clock'>;

export function createWithdrawConnection(
  openSocket: OpenSocket,
  access: WithdrawAccess,
  dialect: WithdrawDialect,
): WithdrawConnection {
  const socket = new GuardedSocket(openSocket);
  let used = false;
  return {
    resendsForMs: socket.resendsForMs,
    get usable() {
      return !used && socket.usable;
    },
    async withdraw(request, options) {
      if (used) return { kind: 'not_sent', reason: 'this connection was already used' };
      used = true;
      try {
        return await withdrawOnce(socket, request, options, access, dialect);
      } catch (error) {
        // A bug: even then the socket knows whether anything was sent.
        const reason = `unexpected: ${describeFailure(error)}`;
        return socket.written ? { kind: 'unknown', reason, durationMs: 0 } : { kind: 'not_sent', reason };
      } finally {
        socket.destroy();
      }
    },
    reset(reason) {
      socket.destroy(new Error(reason));
    },
    close() {
      // A withdrawal under way owns the socket: closing would lose its response.
      if (!used) socket.destroy();
      used = true;
    },
  };
}

async function withdrawOnce(
  socket: GuardedSocket,
  request: WithdrawRequest,
  { mayWrite, orderId }: WithdrawOptions,
  access: WithdrawAccess,
  dialect: WithdrawDialect,
): Promise<WithdrawOutcome> {
  const { path } = dialect;
  const prepared = dialect.prepare(request, orderId);
  if ('wrong' in prepared) {
    return { kind: 'not_sent', reason: `the request breaks the gateway's rules for ${prepared.wrong.join(', ')}` };
  }
  const { body, headers, redact, classify } = prepared;
  const exchange = await exchangeOnce(socket, { url: `${access.baseUrl}/${path}`, body, headers }, mayWrite, access);
  const finding = find(exchange, classify, redact);
  // Otherwise something before the gateway may have responded, and the kernel may still have the request.
  if (finding.outcome.kind === 'accepted' || finding.outcome.kind === 'rejected') socket.markAnswered();
  if (exchange.kind === 'responded') noteHttpStatus(exchange.response.status);
  // Log only once the outcome is certain: a logger that throws must not change it.
  logCall(access.logger.child({ requestId: randomUUID(), endpoint: path }), exchange, finding);
  return finding.outcome;
}

interface Finding {
  readonly outcome: WithdrawOutcome;
  readonly differing: readonly string[];
}

function find(exchange: Exchange, classify: PreparedWithdrawal['classify'], redact: SignedRequest['redact']): Finding {
  if (exchange.kind === 'not_sent') return { outcome: exchange, differing: [] };
  if (exchange.kind === 'lost') return { outcome: { ...exchange, kind: 'unknown' }, differing: [] };
  const { response, durationMs } = exchange;
  const { outcome, differing } = classify(response);
  return { outcome: { ...redactOutcome(outcome, redact), durationMs }, differing };
}

function redactOutcome(outcome: SentOutcome, redact: (text: string) => string): SentOutcome {
  switch (outcome.kind) {
    case 'accepted':
      return outcome;
    case 'rejected':
      return { ...outcome, message: redact(outcome.message) };
    case 'unknown':
      return { ...outcome, reason: redact(outcome.reason) };
  }
}

function logCall(log: Logger, exchange: Exchange, { outcome, differing }: Finding): void {
  if (differing.length > 0) log.warn({ differing }, 'the gateway accepted a withdrawal but repeated it differently');
  log.info({ ...callFields(exchange), outcome: outcome.kind, ...reasonOf(outcome) }, 'withdraw called');
}

function callFields(exchange: Exchange): object {
  if (exchange.kind === 'not_sent') return {};
  const durationMs = Math.round(exchange.durationMs);
  return exchange.kind === 'responded' ? { httpStatus: exchange.response.status, durationMs } : { durationMs };
}

function reasonOf(outcome: WithdrawOutcome): object {
  if (outcome.kind === 'accepted') return {};
  return { reason: outcome.kind === 'rejected' ? outcome.message : outcome.reason };
}
