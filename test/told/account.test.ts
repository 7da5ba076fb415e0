import { tellsOf } from './support/tell.js';
import { ACCOUNT_WAYS } from './ways/account.js';

tellsOf(ACCOUNT_WAYS);
