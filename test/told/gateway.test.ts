import { tellsOf } from './support/tell.js';
import { GATEWAY_WAYS } from './ways/gateway.js';

tellsOf(GATEWAY_WAYS);
