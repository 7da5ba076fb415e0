import { Worker } from 'bullmq';

/**
 * Loaded into a worker process: the first BullMQ worker of the status queue waits for a job without an end, as one was seen
 * to do after a failover of a Redis Cluster.
 */
const { waitForJob } = Worker.prototype;
let hung;
Worker.prototype.waitForJob = async function (...args) {
  if (this.name === 'transactionstatus') hung ??= this;
  return this === hung ? new Promise(() => undefined) : waitForJob.apply(this, args);
};
