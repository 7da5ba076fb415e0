/**
 * The text under which payments to one recipient are counted together: another spelling of an address, or another
 * destination tag of the same wallet, must not begin a count of its own.
 *
 * @param addressTo - as it is sent: with its destination tag, where the network has one (docs/gateway-api.md#fields)
 */
export function addressKey(addressTo: string): string {
  const address = addressTo.split(':', 1)[0] ?? '';
  return isCaseless(address) ? address.toLowerCase() : address;
}

/** Hexadecimal addresses, whose case is a checksum at most, and bech32, which is all in one case or the other. */
function isCaseless(address: string): boolean {
  return /^0x[0-9a-f]+$/i.test(address) || /^(bc|tb|ltc|addr|cosmos|bnb)1[02-9ac-hj-np-z]+$/i.test(address);
}
