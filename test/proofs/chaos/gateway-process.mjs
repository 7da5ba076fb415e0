// The gateway of a round as a process of its own, so that it can be stopped and continued like one.
// argv[2]: the options of startSandbox as JSON. Sends its parent the address, and ends with it.
import { startSandbox } from '../../../dist/sandbox/index.js';

const sandbox = await startSandbox(JSON.parse(process.argv[2]));
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.send({ url: sandbox.url });
