// Preloaded into a process by `node --import`: its machine has the name in HOST_NAME, so that one machine is several hosts.
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';

os.hostname = () => process.env.HOST_NAME;
syncBuiltinESMExports();
