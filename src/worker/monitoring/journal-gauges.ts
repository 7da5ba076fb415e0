import { Gauge, type Registry } from 'prom-client';
import type { AccountView } from './account-snapshot.js';

/** Gauges of the send journal. */
export type JournalGauges = ReturnType<typeof createJournalGauges>;

export function createJournalGauges(registry: Registry) {
  return {
    journalHead: new Gauge({
      name: 'payouts_journal_head_info',
      help: '1 for the hash with which the send journal ended when the process that sends told it last, every ten minutes.',
      labelNames: ['platform_id', 'journal_id', 'head'],
      registers: [registry],
    }),
  };
}

/** The gauges were reset before: the series of an earlier head is gone. */
export function setJournalGauges(
  gauges: JournalGauges,
  { platformId, journalHead }: Pick<AccountView, 'platformId' | 'journalHead'>,
): void {
  if (journalHead === undefined) return;
  const { journalId, hash } = journalHead;
  gauges.journalHead.set({ platform_id: String(platformId), journal_id: journalId, head: hash }, 1);
}
