import { createBullBoard } from '@bull-board/api';
import type { ThemeTokenName } from '@bull-board/api/typings/app';
import type { Router } from 'express';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import { BoardServer } from './board-server.js';
import { PayoutJobAdapter } from './payout-job-adapter.js';

/** Bull Board loads its typefaces from a font service; system fonts need no other host. */
const SYSTEM_FONTS: Partial<Record<ThemeTokenName, string>> = {
  'font-sans': 'system-ui, sans-serif',
  'font-mono': 'ui-monospace, monospace',
};

/** Bull Board for both queues of the account, read-only. Mount it beside the payout pages, as `/board`. */
export function createBoard(ledger: PayoutLedger, queues: PayoutQueues): Router {
  const server = new BoardServer();
  createBullBoard({
    queues: [
      new PayoutJobAdapter(queues.withdraw, ledger, 'Payouts to send'),
      new PayoutJobAdapter(queues.transactionstatus, ledger, 'Accepted payouts, polled until they are final'),
    ],
    serverAdapter: server,
    options: {
      uiConfig: {
        boardTitle: `Payouts ${ledger.connection.platformId}`,
        hideDocsLink: true,
        theme: { light: SYSTEM_FONTS, dark: SYSTEM_FONTS },
      },
    },
  });
  return server.getRouter();
}
