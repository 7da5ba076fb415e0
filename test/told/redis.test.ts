import { tellsOf } from './support/tell.js';
import { REDIS_WAYS } from './ways/redis.js';

tellsOf(REDIS_WAYS);
