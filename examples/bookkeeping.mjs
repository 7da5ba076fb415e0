// The books of an account in SQLite, from `payouts export`. It needs Node 22.13 or later, for node:sqlite:
//
//   payouts export | node bookkeeping.mjs books.db
//
// Run it as often as you like: it replaces what it wrote before, and keeps other tables of the file.
import { DatabaseSync } from 'node:sqlite';
import { createInterface } from 'node:readline';

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: payouts export | node bookkeeping.mjs FILE.db');
  process.exit(2);
}

const db = new DatabaseSync(file);
db.exec('BEGIN');
// Amounts are text: a REAL would lose digits. Sum them with a decimal type, or per currency in its smallest unit.
db.exec(`
  DROP TABLE IF EXISTS payouts;
  DROP TABLE IF EXISTS history;
  DROP TABLE IF EXISTS approvals;
  DROP TABLE IF EXISTS removed;
  DROP TABLE IF EXISTS sends;
  DROP TABLE IF EXISTS acts;
  DROP TABLE IF EXISTS events;
  CREATE TABLE payouts (payout_id TEXT PRIMARY KEY, state TEXT, final INTEGER, payment_id INTEGER, amount TEXT, fee TEXT,
    address_to TEXT, reference TEXT, batch TEXT, gateway_id TEXT, txhash TEXT,
    late_gateway_id TEXT, late_txhash TEXT, created_at TEXT, updated_at TEXT, json TEXT);
  CREATE TABLE history (payout_id TEXT, at TEXT, from_state TEXT, to_state TEXT, by TEXT, reason TEXT);
  CREATE TABLE approvals (payout_id TEXT, by TEXT, decision TEXT, at TEXT, expires_at TEXT);
  CREATE TABLE removed (payout_id TEXT PRIMARY KEY, state TEXT);
  CREATE TABLE sends (payout_id TEXT, attempt INTEGER, sent_at TEXT, amount TEXT, address_to TEXT, outcome TEXT,
    gateway_id TEXT, txhash TEXT, message TEXT, PRIMARY KEY (payout_id, attempt, sent_at));
  CREATE TABLE acts (at TEXT, by TEXT, what TEXT, payout_id TEXT, count INTEGER, reason TEXT);
  CREATE TABLE events (event_id TEXT PRIMARY KEY, type TEXT, payout_id TEXT, json TEXT);
`);

const inserts = new Map();
function insert(table, ...values) {
  const places = values.map(() => '?').join();
  if (!inserts.has(table)) inserts.set(table, db.prepare(`INSERT INTO ${table} VALUES (${places})`));
  inserts.get(table).run(...values.map((value) => (typeof value === 'boolean' ? Number(value) : (value ?? null))));
}

const WRITERS = {
  payout(line) {
    const { payoutId, state, final, paymentId, amount, fee, addressTo, reference, batch, history = [] } = line;
    const { gatewayId, txhash, lateGatewayId, lateTxhash, createdAt, updatedAt, approvals = [] } = line;
    const paidAs = [gatewayId, txhash, lateGatewayId, lateTxhash];
    const about = [addressTo, reference, batch, ...paidAs, createdAt, updatedAt];
    insert('payouts', payoutId, state, final, paymentId, amount, fee, ...about, JSON.stringify(line));
    for (const { at, from, to, by, reason } of history) insert('history', payoutId, at, from, to, by, reason);
    for (const { by, decision, at, expiresAt } of approvals) insert('approvals', payoutId, by, decision, at, expiresAt);
  },
  removed({ payoutId, state }) {
    insert('removed', payoutId, state);
  },
  send({ payout_id, attempt, sent_at, amount, address_to, outcome, gateway_id, txhash, message }) {
    insert('sends', payout_id, attempt, sent_at, amount, address_to, outcome, gateway_id, txhash, message);
  },
  activity({ at, by, what, payoutId, count, reason }) {
    insert('acts', at, by, what, payoutId, count, reason);
  },
  event(line) {
    insert('events', line.eventId, line.type, line.payoutId, JSON.stringify(line));
  },
};

/** The last line of a file that is cut off is no JSON. */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return { kind: 'unreadable' };
  }
}

let counts;
const read = { payout: 0, removed: 0, send: 0, activity: 0, event: 0 };
for await (const text of createInterface({ input: process.stdin })) {
  const line = parse(text);
  if (line.kind === 'end') counts = line.counts;
  if (!(line.kind in WRITERS)) continue;
  WRITERS[line.kind](line);
  read[line.kind] += 1;
}
const isWhole = counts !== undefined && Object.entries(read).every(([kind, count]) => counts[kind] === count);
if (!isWhole) {
  console.error('The export is cut off: nothing was written.');
  process.exit(1);
}
db.exec('COMMIT');
db.close();
console.log(`${read.payout} payouts, ${read.send} sends, ${read.activity} acts and ${read.event} events.`);
