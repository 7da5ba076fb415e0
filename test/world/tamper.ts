import { toApprovalField, toSignatureFields } from '../../src/ledger/control-record.js';
import { type Payout, toHeldField } from '../../src/ledger/payout.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';
import type { WorldLedger } from './world-ledger.js';

type PayoutChange = { readonly [Field in keyof Payout]?: Payout[Field] | undefined };

export function alterPayout(ledger: WorldLedger, payoutId: string, change: PayoutChange): void {
  const { redis, connection } = ledger;
  const { keys } = connection;
  const record = redis.write(keys.payout(payoutId), 'hash');
  const before = record.get('state');
  for (const [field, value] of toFields(change)) {
    if (value === undefined) record.delete(field);
    else record.set(field, value);
  }
  if (change.approvals !== undefined) {
    for (const field of [...record.keys()]) if (field.startsWith('approval:')) record.delete(field);
    for (const approval of change.approvals) record.set(`approval:${approval.by}`, toApprovalField(approval));
  }
  const { state } = change;
  if (state === undefined || state === before) return;
  const place = placeOf(ledger, payoutId) ?? redis.call('HINCRBY', [keys.ledger, 'seq', '1']);
  leaveIndexes(ledger, payoutId);
  redis.call('ZADD', [keys.state(state), String(place), payoutId]);
}

export function putPayout(ledger: WorldLedger, payout: PayoutChange & Pick<Payout, 'payoutId' | 'state'>): void {
  const { redis, connection } = ledger;
  redis.write(connection.keys.payout(payout.payoutId), 'hash').clear();
  leaveIndexes(ledger, payout.payoutId);
  const at = new Date(connection.clock.wallNow()).toISOString();
  alterPayout(ledger, payout.payoutId, { ...payout, history: [{ at, to: payout.state }] });
}

export function removePayout(ledger: WorldLedger, payoutId: string): void {
  leaveIndexes(ledger, payoutId);
  ledger.redis.remove(ledger.connection.keys.payout(payoutId));
}

export function freeTxhash({ redis, connection }: WorldLedger, txhash: string): void {
  for (const bucket of connection.keys.txhashBuckets(txhash)) redis.remove(bucket);
}

export function setFields(
  { redis }: WorldLedger,
  key: string,
  fields: Readonly<Record<string, string | number | undefined>>,
): void {
  for (const [field, value] of Object.entries(fields)) {
    if (value === undefined) redis.call('HDEL', [key, field]);
    else redis.call('HSET', [key, field, String(value)]);
  }
}

function placeOf({ redis, connection }: WorldLedger, payoutId: string) {
  for (const state of PAYOUT_STATES) {
    const place = redis.read(connection.keys.state(state), 'zset')?.get(payoutId);
    if (place !== undefined) return place;
    const stream = redis.read(connection.keys.ended(state), 'stream');
    const entry = stream?.entries.find(({ fields }) => fields[1] === payoutId);
    if (entry !== undefined) return entry.id[0];
  }
  return undefined;
}

function leaveIndexes({ redis, connection }: WorldLedger, payoutId: string) {
  for (const state of PAYOUT_STATES) redis.call('ZREM', [connection.keys.state(state), payoutId]);
}

const OTHERWISE: ReadonlySet<string> = new Set([
  ...['payoutId', 'createdAt', 'updatedAt', 'requeueCount', 'signed', 'held', 'history', 'approvals', 'metadata'],
]);

function* toFields(change: PayoutChange): Generator<[field: string, value: string | undefined]> {
  const { requeueCount, signed, held, history, metadata } = change;
  for (const [field, value] of Object.entries(change)) {
    if (OTHERWISE.has(field) || typeof value === 'object') continue;
    yield [field, value === undefined ? undefined : String(value)];
  }
  if (requeueCount !== undefined) yield ['round', String(requeueCount)];
  if (change.lateTxhash !== undefined) yield ['lateAt', '0'];
  const pairs = [
    ...(metadata === undefined ? [] : ['metadata', JSON.stringify(metadata)]),
    ...(signed === undefined ? [] : toSignatureFields(signed)),
    ...(held === undefined ? [] : ['held', toHeldField({ isTampering: false, ...held })]),
  ];
  for (let index = 0; index < pairs.length; index += 2) yield [pairs[index] ?? '', pairs[index + 1]];
  if (history === undefined) return;
  yield ['n', String(history.length)];
  for (const [index, { at, to, by = '', reason = '' }] of history.entries()) {
    const entry = `${Date.parse(at)}\t${to}`;
    yield [`h${index}`, by === '' && reason === '' ? entry : `${entry}\t${by}\t${reason}`];
  }
}
