import { isAborted } from '../../clock.js';
import { errorCode } from '../../errors.js';
import type { WithdrawConnection, WithdrawGateway } from '../../gateway/withdraw-gateway.js';
import type { Pacer } from './pacer.js';
import type { SendReport } from './send-report.js';

/** Early enough to be ready, late enough not to be closed as idle. */
const CONNECT_LEAD_MS = 1_000;

/** Ledger and journal are written before the slot opens, to keep the pace. */
const BEGIN_LEAD_MS = 30;

export async function connectInTime(
  pacer: Pacer,
  gateway: Pick<WithdrawGateway, 'openConnection'>,
  stop: AbortSignal,
): Promise<WithdrawConnection | Extract<SendReport, { kind: 'stopped' | 'not_sent' }>> {
  for (;;) {
    await pacer.waitUntilOpen(stop, CONNECT_LEAD_MS);
    if (isAborted(stop)) return { kind: 'stopped' };
    let connection: WithdrawConnection;
    try {
      connection = await gateway.openConnection(stop);
    } catch (error) {
      if (isAborted(stop)) return { kind: 'stopped' };
      return { kind: 'not_sent', reason: (error as Error).message, code: errorCode(error) };
    }
    const hadToWait = !pacer.isOpen;
    await pacer.waitUntilOpen(stop, BEGIN_LEAD_MS);
    if (!isAborted(stop) && connection.usable) return connection;
    connection.close();
    if (isAborted(stop)) return { kind: 'stopped' };
    // A connection that ended while it waited is opened again; one that ends at once is a fault of the gateway.
    if (!hadToWait) {
      const reason = 'the gateway ended the connection before it was used';
      return { kind: 'not_sent', reason, code: 'GATEWAY_UNAVAILABLE' };
    }
  }
}
