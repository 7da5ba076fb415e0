import { tellsOf } from './support/tell.js';
import { WAYS } from './ways/index.js';

tellsOf(WAYS);
