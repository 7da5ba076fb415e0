import { Worker } from 'bullmq';

/** The first BullMQ worker of the status queue waits without an end, as one did after a failover of a Redis Cluster. */
const { waitForJob } = Worker.prototype;
let hung;
Worker.prototype.waitForJob = async function (...args) {
  if (this.name === 'transactionstatus') hung ??= this;
  return this === hung ? new Promise(() => undefined) : waitForJob.apply(this, args);
};
