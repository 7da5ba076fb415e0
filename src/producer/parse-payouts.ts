import { z } from 'zod';
import { InvalidInputError, type Problem } from '../base/errors.js';
import { isNothing, parseInput } from '../base/fields.js';
import { findUnpayable, friendlyTon, isPrivateKey, parseWallet, splitTag, type Wallet } from '../gateway/wallet.js';
import { type NewPayout, type PayoutInput, payoutInputSchema } from '../ledger/payout.js';
import { toPlainPayout } from './plain-payout.js';
import type { PayoutSigner } from './producer-control.js';

/** With its wallet: parsing an address takes most of the time of a check. */
export interface ParsedPayout {
  readonly payout: NewPayout;
  readonly wallet: Wallet;
}

/** Checks a payout to enqueue or sign. @throws InvalidInputError naming field, rule and value */
export function parsePayout(input: unknown, rule: RecipientRule): ParsedPayout {
  const payout = toPlainPayout(input) ?? parseInput(payoutInputSchema, input, 'payout', formOf(input));
  const wallet = checkRecipient(payout.addressTo, rule);
  return { payout: asItIsNow(payout), wallet };
}

function formOf(input: unknown): string | undefined {
  return Array.isArray(input) ? 'one payout, or the list to enqueueMany' : undefined;
}

const listSchema = z.object({ payouts: z.array(z.unknown(), 'must be a list') });

/** @throws InvalidInputError naming every problem with the payout's index, such as `[3].amount` */
export function parsePayouts(
  inputs: readonly PayoutInput[],
  rule: RecipientRule,
  signer: Pick<PayoutSigner, 'check'> | undefined,
): ParsedPayout[] {
  if (!Array.isArray(inputs)) parseInput(listSchema, { payouts: inputs });
  return checkEach(inputs, (input) => {
    const parsed = parsePayout(input, rule);
    signer?.check(parsed.payout);
    return parsed;
  });
}

export function checkEach<Given, Result>(all: readonly Given[], check: (one: Given) => Result): Result[] {
  const results: Result[] = [];
  const problems: Problem[] = [];
  for (const [index, one] of all.entries()) {
    try {
      results.push(check(one));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      for (const { field, message } of error.problems) problems.push({ field: `[${index}].${field}`, message });
    }
  }
  if (problems.length > 0) throw new InvalidInputError(problems);
  return results;
}

/** Copies the metadata, because the application may change its object before the ledger has it. */
function asItIsNow(payout: NewPayout): NewPayout {
  const { metadata } = payout;
  if (metadata === undefined) return payout;
  return { ...payout, metadata: JSON.parse(JSON.stringify(metadata)) as typeof metadata };
}

/**
 * Rules for the recipient of a new payout. Only the intake checks them: what the ledger has is sent as it is. Rules
 * that need the gateway's list are in listed-currencies.ts.
 */

interface RecipientRule {
  readonly checksums: boolean;
}

/**
 * @returns the wallet, without its tag
 * @throws InvalidInputError naming the broken rule
 */
export function checkRecipient(addressTo: string, rule: RecipientRule): Wallet {
  const [address, tag] = splitTag(addressTo);
  // Without its value, which no error and no log may have.
  if (isPrivateKey(address)) throw new InvalidInputError([{ field: 'addressTo', message: PRIVATE_KEY }]);
  const wallet = parseWallet(address);
  const problem =
    (HIDDEN.test(addressTo) ? 'contains an invisible character, shown here as its code: remove it' : undefined) ??
    findNoAddress(address) ??
    findPaymentLink(address, tag, wallet) ??
    findRawTon(address, tag, wallet) ??
    findUnpayable(wallet.key) ??
    (rule.checksums ? findWrongChecksum(address, wallet) : undefined) ??
    (tag === undefined ? undefined : findWrongTag(address, tag, wallet));
  if (problem === undefined) return wallet;
  throw new InvalidInputError([{ field: 'addressTo', message: `${problem} (got ${showAddress(addressTo)})` }]);
}

const PRIVATE_KEY =
  'is a private key, not an address (not shown here): who has read it can spend what its wallet has, so empty the wallet';

export function showAddress(addressTo: string): string {
  return JSON.stringify(addressTo).replace(new RegExp(HIDDEN, 'gu'), toCode);
}

/** A word or a digit for a missing value. */
function findNoAddress(address: string): string | undefined {
  const isNone = isNothing(address) || /^(?:0x|0+|x+|tbd|todo)$/i.test(address);
  return isNone ? 'is no address, but stands for a missing one' : undefined;
}

/** Invisible characters: zero width, or direction. */
const HIDDEN = /\p{Cf}/u;

function toCode(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Of networks whose addresses may have a form unknown here. */
const SCHEME =
  /^(bitcoin|litecoin|dogecoin|dash|zcash|ethereum|tron|monero|(web\+)?stellar|xrpl|ripple|solana|(web\+)?cardano|polkadot)$/i;

/**
 * The content of a QR code (BIP-21). No list has the wallet in this form, and the gateway would take the scheme for the
 * wallet.
 */
function findPaymentLink(address: string, tag: string | undefined, { family }: Wallet): string | undefined {
  const [behind = ''] = (tag ?? '').split('?');
  const isLink = behind.startsWith('//') || parseWallet(behind).family !== undefined;
  const isScheme = behind.length >= 20 && SCHEME.test(address);
  if (!address.includes('?') && (family !== undefined || !(isLink || isScheme))) return undefined;
  return 'is a payment link, as QR codes hold it: give the address alone, and its tag behind a colon';
}

/** The API writes a tag behind a colon: it would read `0:…` as the wallet 0 with a tag. */
function findRawTon(address: string, tag: string | undefined, { family, key, problem }: Wallet): string | undefined {
  if (family !== 'ton' || !address.includes(':')) return undefined;
  if (problem !== undefined) return `${problem}: ${COPY_AGAIN}`;
  const friendly = [friendlyTon(key), ...(tag === undefined ? [] : [tag])].join(':');
  return `is a raw TON address, which the gateway would read as a wallet with a tag: write ${JSON.stringify(friendly)}`;
}

export const COPY_AGAIN = 'copy it again from where it comes from';

function findWrongChecksum(address: string, { family, problem }: Wallet): string | undefined {
  if (problem !== undefined) return `${problem}: ${COPY_AGAIN}`;
  if (family !== undefined || !AROUND.test(address)) return undefined;
  const inner = parseWallet(address.replace(new RegExp(AROUND, 'g'), ''));
  const isWhole = inner.family !== undefined && inner.problem === undefined;
  return isWhole ? `has other characters before or behind the address: ${COPY_AGAIN}` : undefined;
}

/** Characters that no address begins or ends with. A formula's `=` is one. */
const AROUND = /^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/;

/** A bech32 address of a network without tags; those of Cosmos have memos. */
const BECH32_WITHOUT_TAG = /^(bc|tb|bcrt|ltc|tltc|rltc|ltcmweb|addr|addr_test|stake)1/;
const MAX_XRP_TAG = 2 ** 32 - 1;

/** Numbers rewritten by programs and spreadsheets. A sign behind the `e` distinguishes them from a hexadecimal id. */
const REWRITTEN_NUMBER =
  /^[-+]?(?:\d+e[-+]\d+|\d+[.,]\d*e[-+]?\d+|\d+[.,]0+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+)$/i;
/** Fullwidth letters and digits, and numbers in the digits of other scripts. */
const FOREIGN_DIGITS = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]|^(?!\d+$)\p{Nd}+$/u;

/** An XRP tag is a number. A TON tag is a comment, so any plausible text is accepted. */
function findWrongTag(address: string, tag: string, { family, key }: Wallet): string | undefined {
  const isWithoutTag =
    family === 'evm' ||
    family === 'hex' ||
    family === 'cashaddr' ||
    family === 'base58' ||
    (family === 'bech32' && BECH32_WITHOUT_TAG.test(key));
  if (isWithoutTag) return 'has a destination tag, which its network does not have: remove the tag and the colon';
  if (family === 'xrp' && address !== key) {
    return 'has a destination tag behind an X-address, which says its tag itself: remove the tag and the colon';
  }
  if (tag === '-1' || isNothing(tag)) return 'has a destination tag that means "none": remove the tag and the colon';
  if (FOREIGN_DIGITS.test(tag))
    return 'has a destination tag with other digits or letters than 0-9, a-z: type it again';
  if (REWRITTEN_NUMBER.test(tag)) {
    return 'has a destination tag that a program or a spreadsheet has rewritten: give its digits as text';
  }
  const isXrpTag = /^\d{1,30}$/.test(tag) && Number(tag) <= MAX_XRP_TAG;
  if (family === 'xrp' && !isXrpTag) return `has a destination tag that XRP cannot have: a number up to ${MAX_XRP_TAG}`;
  if (tag !== tag.trim()) return 'has a space between the colon and the destination tag: remove it';
  return undefined;
}
