import { makeRedisRig } from './support/redis-rig.js';
import { senderLedgerContract } from './sender-ledger-contract.js';

senderLedgerContract('RedisSenderLedger', makeRedisRig);
