import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createJournalGauges, setJournalGauges } from '../../../src/worker/monitoring/account-gauges.js';
import { readMetric } from '../support/watched-worker.js';

const HEAD = { journalId: 'abcdef012345', hash: 'a'.repeat(64), sends: 7, at: 5 };

it('tell the head that was told last, and nothing where this process does not send', async () => {
  const registry = new Registry();
  const gauges = createJournalGauges(registry);
  const read = async (head: string): Promise<number | undefined> =>
    readMetric(await registry.metrics(), 'payouts_journal_head_info', {
      ...{ platform_id: '7', journal_id: 'abcdef012345', head },
    });
  setJournalGauges(gauges, { platformId: 7, journalHead: HEAD });
  expect(await read(HEAD.hash)).toBe(1);
  gauges.journalHead.reset();
  setJournalGauges(gauges, { platformId: 7, journalHead: undefined });
  expect(await read(HEAD.hash)).toBeUndefined();
});
