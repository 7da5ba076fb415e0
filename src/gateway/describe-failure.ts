/**
 * A failure in a few words, taken from the error's own message or code and nothing else: an error of the HTTP library
 * holds the whole request, and with it the signature.
 */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  if (error.message !== '') return error.message;
  // Node's error for a host with several addresses, none of which answers, has a code but no message.
  const { code } = error as NodeJS.ErrnoException;
  return code ?? error.name;
}
