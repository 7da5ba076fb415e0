import { tellsOf } from './support/tell.js';
import { JOURNAL_WAYS } from './ways/journal.js';

tellsOf(JOURNAL_WAYS);
