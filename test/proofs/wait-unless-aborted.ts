/** Waits until `begin` has called the function that it is given, or until the signal is aborted. */
export async function waitUnlessAborted(
  signal: AbortSignal | undefined,
  begin: (end: () => void) => void,
): Promise<void> {
  if (signal?.aborted === true) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      signal?.removeEventListener('abort', end);
      resolve();
    };
    signal?.addEventListener('abort', end);
    begin(end);
  });
}
