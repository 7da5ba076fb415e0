import { useAccount } from './support/use-account.js';
import './contract/begin-rules.js';
import './contract/outcome-rules.js';
import './contract/hold-rules.js';
import './contract/recovery-rules.js';

useAccount();
