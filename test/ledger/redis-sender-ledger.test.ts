import { useAccount } from './support/use-account.js';
import './contract/lease-rules.js';
import './contract/begin-rules.js';
import './contract/outcome-rules.js';
import './contract/several-attempts-rules.js';
import './contract/breaker-rules.js';
import './contract/hold-rules.js';
import './contract/recovery-rules.js';
import './contract/decision-rules.js';

// Every rule of the port `SenderLedger`, each subject in a file.
useAccount();
