import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type { JobStatus, QueueJobJson } from '@bull-board/api/typings/app';
import type { Job, Queue } from 'bullmq';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Payout } from '../ledger/payout.js';
import { readPayouts } from '../ledger/payout-queries.js';
import type { PayoutJobData } from '../queues/payout-queues.js';
import { formatCurrency, shorten } from '../format.js';
import { payoutPath } from './payout-path.js';

/** A job's data with the payout's present state in the ledger: the job itself holds only what was true when it was added. */
interface BoardJobData extends PayoutJobData {
  readonly payout?: Payout | undefined;
}

/** A queue as Bull Board shows it: read-only, each job with its payout's present state. */
export class PayoutJobAdapter extends BullMQAdapter {
  readonly #ledger: PayoutLedger;

  constructor(queue: Queue<PayoutJobData>, ledger: PayoutLedger, description: string) {
    super(queue, {
      readOnlyMode: true,
      allowRetries: false,
      description,
      externalJobUrl: ({ data }) => ({
        href: `..${payoutPath((data as BoardJobData).payoutId)}`,
        displayText: 'Payout and its history',
      }),
    });
    this.#ledger = ledger;
    this.setFormatter('name', ({ data }: QueueJobJson) => describeJob(data as BoardJobData));
    this.setFormatter('data', showJobData);
  }

  override async getJobs(statuses: JobStatus[], start?: number, end?: number): Promise<Job[]> {
    return this.#withPayouts(await super.getJobs(statuses, start, end));
  }

  override async getJob(jobId: string): Promise<Job | undefined> {
    // Bull Board decodes the id in its URL twice. A job's id has `%3A` in place of a colon.
    const job = await super.getJob(jobId.replaceAll(':', '%3A'));
    return job && (await this.#withPayouts([job]))[0];
  }

  async #withPayouts(jobs: Job[]): Promise<Job[]> {
    const payoutIds = jobs.map(({ data }) => (data as PayoutJobData).payoutId);
    const payouts = await readPayouts(this.#ledger.connection, payoutIds);
    const byId = new Map(payouts.map((payout) => [payout.payoutId, payout]));
    for (const job of jobs) {
      const data = job.data as PayoutJobData;
      job.data = { ...data, payout: byId.get(data.payoutId) } satisfies BoardJobData;
    }
    return jobs;
  }
}

function describeJob({ payoutId, amount, payout, ...data }: BoardJobData): string {
  return `${payoutId} · ${amount} of ${formatCurrency(data)} · ${payout?.state ?? 'not in the ledger'}`;
}

/** Field by field: what is not listed is not shown. */
function showJobData({
  payoutId,
  amount,
  addressTo,
  payout,
  ...data
}: BoardJobData): Readonly<Record<string, unknown>> {
  return {
    payoutId,
    state: payout?.state ?? 'not in the ledger',
    amount,
    currency: formatCurrency(data),
    addressTo: shorten(addressTo),
    txhash: payout?.txhash ?? data.txhash,
    error: payout?.message,
  };
}
