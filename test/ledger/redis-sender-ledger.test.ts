import { useRedisRig } from './support/use-redis-rig.js';
import './contract/lease-rules.js';
import './contract/begin-rules.js';
import './contract/finish-rules.js';
import './contract/breaker-rules.js';
import './contract/hold-rules.js';
import './contract/recovery-rules.js';
import './contract/several-attempts-rules.js';
import './contract/act-rules.js';
import './contract/approval-rules.js';

// Every rule of the port `SenderLedger`, each subject in a file.
useRedisRig();
