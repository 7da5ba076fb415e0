import { describe, expect, it } from '@jest/globals';
import { UnsupportedFormatError } from '../../src/base/errors.js';
import { parseLine, TORN_MARK } from '../../src/journal/parse-line.js';
import { journaled } from '../worker/support/send-rig.js';

const PLACE = '/journal/1.journal:7';
const parse = (line: unknown) => parseLine(typeof line === 'string' ? line : JSON.stringify(line), PLACE)?.line;
const HASH = 'a1'.repeat(32);
const MINE = { payoutId: 'p', attempt: 1, token: 'mine' };
const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };

describe('a line', () => {
  it.each<[string, object]>([
    ['a header of format 2', { v: 2, journalId: 'j' }],
    ['a header', { v: 3, journalId: 'j', bornAt: 5 }],
    [
      'a header with its marks',
      { v: 3, journalId: 'j', bornAt: 5, complete: { at: 6, by: 'alice', reason: 'new' }, prunedUpTo: 7 },
    ],
    ['a statement that nothing is missing', { complete: { at: 6, by: 'alice', reason: 'new account' } }],
    ['a pause', { paused: { at: 6, reason: 'blocked' } }],
    ['the end of a pause', { resumed: { at: 6, act: HASH } }],
    [
      'a signed send',
      journaled(MINE, { signed: { intent: HASH, key: 'shop', issuedAt: 1, expiresAt: 2, act: HASH, clears: [1] } }),
    ],
    ['a ledger', { ledgerId: 'L', epoch: 1, sends: 2, token: 'second' }],
    ['an adopted ledger', { ledgerId: 'L', epoch: 1, sends: 2, token: 'second', adopted: true }],
    ['peers', { peers: [{ journalId: 'j', host: 'h', dir: '/d' }] }],
    ['a send', journaled(MINE)],
    ['a send with its currency', journaled(MINE, { request: { ...REQUEST, symbol: 'USD' } })],
    ['a send after one of format 1', journaled(MINE, { after: { sends: 3, token: 'e:2' } })],
    ['an acceptance', { ...MINE, at: 5, outcome: { kind: 'accepted', txhash: 'h' } }],
    ['a rejection', { ...MINE, at: 5, outcome: { kind: 'rejected', message: 'no' } }],
    ['an unknown outcome', { ...MINE, at: 5, outcome: { kind: 'unknown', reason: 'silence' } }],
    ['a send that was none', { ...MINE, at: 5, outcome: { kind: 'not_sent', reason: 'refused' } }],
  ])('that is %s is read as it was written', (_, line) => {
    expect(parse(line)).toEqual(line);
  });

  it.each(['', 'anything torn', `{"payoutId":"p"${TORN_MARK}`])('that says nothing is none: "%s"', (line) => {
    expect(parse(line)).toBeUndefined();
  });

  it.each([
    'nonsense',
    '{"payoutId":"p"',
    'null',
    '[]',
    '{}',
    '7',
    { ...journaled(MINE), sends: '3' },
    { ...journaled(MINE), request: { ...REQUEST, amount: 12.5 } },
    { ...journaled(MINE), request: { ...REQUEST, symbol: null } },
    { ...MINE, at: 5, outcome: { kind: 'accepted' } },
    { ...MINE, at: 5, outcome: { kind: 'paid', txhash: 'h' } },
    { payoutId: 'p', attempt: 1, at: 5, outcome: { kind: 'accepted', txhash: 'h' } },
    { ledgerId: 'L', epoch: 1 },
    { ledgerId: 'L', epoch: 1.5, sends: 2 },
    { v: 2 },
    { v: 3, journalId: 'j' },
    { v: 3, journalId: 'j', bornAt: 5, prev: 'short' },
    { v: 3, journalId: 'j', bornAt: 5, prev: [HASH.toUpperCase()] },
    { resumed: { at: 6, act: 'none' } },
    { ...journaled(MINE), signed: { intent: HASH, key: 'shop', issuedAt: 1 } },
    { peers: [{ journalId: 'j' }] },
  ])('that makes no sense is an error that names the place and not the content: %j', (line) => {
    expect(() => parse(line)).toThrow(
      `The send journal cannot be read at ${PLACE}. Nothing may be sent without it; see docs/runbooks/journal.md.`,
    );
  });
});

describe('a line of format 1', () => {
  it('that is a send knows it by its epoch, and the send before it by its number', () => {
    const line = { payoutId: 'p', attempt: 2, epoch: 3, sends: 9, at: 5, request: REQUEST };
    expect(parse(line)).toEqual({ ...line, token: 'e:3', after: { sends: 8 } });
  });

  it('that is a ledger names no send', () => {
    expect(parse({ ledgerId: 'L', epoch: 3, sends: 9 })).toEqual({ ledgerId: 'L', epoch: 3, sends: 9, token: '' });
  });
});

describe('the header of a newer format', () => {
  it('is refused with the place and what can be read', () => {
    expect(() => parse({ v: 4, journalId: 'j' })).toThrow(UnsupportedFormatError);
    expect(() => parse({ v: 4, more: 'x' })).toThrow(
      `The send journal has format 4 at ${PLACE}; this version of payout-queue reads formats 1 to 3. Run the version that wrote it, or a newer one.`,
    );
  });
});
