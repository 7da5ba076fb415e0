import { tellsOf } from './support/tell.js';
import { WORKER_WAYS } from './ways/worker.js';

tellsOf(WORKER_WAYS);
