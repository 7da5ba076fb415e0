// Preloaded by `node --import`: the disk ails as the file AILING_DISK says. `slow MS`: each datasync takes that long.
// `full`: nothing can be written. `torn`: the same, but half of the first line is. `hang`: a system call does not return until someone opens the pipe AILING_DISK.pipe.
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const control = process.env.AILING_DISK;
const file = await open(control);
const { write, datasync, sync } = Object.getPrototypeOf(file);
await file.close();

let isTorn = false;

const hang = async () => (await open(`${control}.pipe`, 'r')).close();
const ailment = () => readFileSync(control, 'utf8').trim().split(' ');

Object.assign(Object.getPrototypeOf(file), {
  async write(...args) {
    const [kind] = ailment();
    const [bytes] = args;
    if (kind === 'torn' && !isTorn && Buffer.isBuffer(bytes)) {
      isTorn = true;
      return write.call(this, bytes.subarray(0, bytes.length / 2));
    }
    if (kind === 'full' || kind === 'torn') {
      const error = new Error('ENOSPC: no space left on device, write');
      throw Object.assign(error, { code: 'ENOSPC', syscall: 'write' });
    }
    return write.apply(this, args);
  },
  async datasync() {
    const [kind, ms] = ailment();
    if (kind === 'slow') await delay(Number(ms));
    if (kind === 'hang') await hang();
    return datasync.apply(this);
  },
  async sync() {
    if (ailment()[0] === 'hang') await hang();
    return sync.apply(this);
  },
});
