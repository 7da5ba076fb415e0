import { describe, expect, it } from '@jest/globals';
import { UnsupportedFormatError } from '../../src/errors.js';
import { parseLine, TORN_MARK } from '../../src/journal/journal-line.js';
import { journaled } from '../worker/support/send-rig.js';

const PLACE = '/journal/1.journal:7';
const parse = (line: unknown) => parseLine(typeof line === 'string' ? line : JSON.stringify(line), PLACE);
const MINE = { payoutId: 'p', attempt: 1, token: 'mine' };
const REQUEST = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };

describe('a line', () => {
  it.each<[string, object]>([
    ['a header', { v: 2, journalId: 'j' }],
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
    { peers: [{ journalId: 'j' }] },
  ])('that makes no sense is an error that names the place and not the content: %j', (line) => {
    expect(() => parse(line)).toThrow(
      `The send journal cannot be read at ${PLACE}. Nothing may be sent without it; see docs/operations.md.`,
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
    expect(() => parse({ v: 3, journalId: 'j' })).toThrow(UnsupportedFormatError);
    expect(() => parse({ v: 3, journalId: 'j', more: 'x' })).toThrow(
      `The send journal has format 3 at ${PLACE}; this version of payout-queue reads formats 1 to 2. Run the version that wrote it, or a newer one.`,
    );
  });
});
