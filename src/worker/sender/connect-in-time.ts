import { isAborted } from '../../clock.js';
import type { WithdrawConnection, WithdrawGateway } from '../../gateway/withdraw-gateway.js';
import type { Pacer } from './pacer.js';
import type { SendReport } from './send-report.js';

/** A connection is opened this long before its slot, so that it is ready in time and not idle for long. */
const CONNECT_LEAD_MS = 1_000;

/** The ledger and the journal are written this long before the slot opens, so that their time does not slow the pace. */
const BEGIN_LEAD_MS = 30;

/**
 * Waits until the slot is about to open, and opens a connection for it.
 * @param stop - ends the wait
 * @returns the connection, usable; or why there is none
 */
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
      return isAborted(stop) ? { kind: 'stopped' } : { kind: 'not_sent', reason: (error as Error).message };
    }
    const hadToWait = !pacer.isOpen;
    await pacer.waitUntilOpen(stop, BEGIN_LEAD_MS);
    if (!isAborted(stop) && connection.usable) return connection;
    connection.close();
    if (isAborted(stop)) return { kind: 'stopped' };
    // A connection that ended while it waited is opened again; one that ends at once is a fault of the gateway.
    if (!hadToWait) return { kind: 'not_sent', reason: 'the gateway ended the connection before it was used' };
  }
}
