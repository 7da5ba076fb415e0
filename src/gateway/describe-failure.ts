/**
 * A failure in a few words, taken from the error's own message or code and nothing else: an error of the HTTP library
 * holds the whole request, and with it the signature.
 */
export function describeFailure(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  if (typeof message === 'string' && message !== '') return message;
  // Node's error for a host with several addresses, none of which answers, has a code but no message.
  return typeof code === 'string' ? code : 'no reason was given';
}
