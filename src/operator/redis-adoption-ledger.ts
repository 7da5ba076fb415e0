import { randomBytes } from 'node:crypto';
import {
  adoptLedger,
  adoptSends,
  countSendablePayouts,
  holdSendablePayouts,
  readBookmark,
} from '../ledger/adopt-ledger.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { RedisSenderLedger } from '../ledger/redis-sender-ledger.js';
import type { AdoptionLedger } from './adoption.js';

const TOKEN_BYTES = 6;

/**
 * The ledger in Redis, for an adoption. Confirming the last write confirms all before it: a failover that lost them
 * would also lose the objections.
 */
export function redisAdoptionLedger(payouts: PayoutLedger): AdoptionLedger {
  const { connection } = payouts;
  const sender = new RedisSenderLedger(connection, 'reply');
  return {
    readSender: async () => sender.readSender(),
    findForgottenSends: async (sends) => sender.findForgottenSends(sends),
    object: async (objection) => sender.object(objection),
    adoptSends: async (sends, actor) => adoptSends(connection, sends, actor),
    countSendable: async () => countSendablePayouts(connection),
    holdSendable: async (actor) => holdSendablePayouts(connection, actor),
    readBookmark: async () => readBookmark(connection),
    adoptLedger: async (highest, journals, actor, bookmarks, act) => {
      const token = randomBytes(TOKEN_BYTES).toString('base64url');
      return payouts.confirmed(async () => adoptLedger(connection, highest, token, journals, actor, bookmarks, act));
    },
  };
}
