import { describe, expect, it } from '@jest/globals';
import { startSandbox, type FaultKind } from '../../src/sandbox/index.js';
import { makeSelfSignedCertificate } from './support/self-signed-certificate.js';
import { clientOf } from './support/test-client.js';

const SECRET_KEY = 'k-sandbox-faults';
const REQUEST = { paymentId: 9, amount: '1.5', addressTo: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC' };
const WITHDRAW_TIMEOUT_MS = 700;

/** The client's outcome for each fault, and how often the sandbox must have paid. */
const OUTCOMES: Record<FaultKind, { kind: string; payments: number }> = {
  'latency-before': { kind: 'accepted', payments: 1 },
  'latency-after': { kind: 'accepted', payments: 1 },
  'drop-before': { kind: 'unknown', payments: 0 },
  'drop-after': { kind: 'unknown', payments: 1 },
  'hang-before': { kind: 'unknown', payments: 0 },
  hang: { kind: 'unknown', payments: 1 },
  truncated: { kind: 'unknown', payments: 1 },
  'html-502': { kind: 'unknown', payments: 1 },
  'json-500': { kind: 'unknown', payments: 1 },
  'wrong-json': { kind: 'unknown', payments: 1 },
  'no-txhash': { kind: 'unknown', payments: 1 },
  'string-result': { kind: 'accepted', payments: 1 },
  'redirect-307': { kind: 'unknown', payments: 0 },
  'rate-429': { kind: 'rejected', payments: 0 },
  reject: { kind: 'rejected', payments: 0 },
  block: { kind: 'rejected', payments: 0 },
};

const tls = makeSelfSignedCertificate();

// What a connection of TLS does otherwise is tested with the client: here it is one fault of each end of the request.
const CASES = [
  ...Object.keys(OUTCOMES).map((fault) => [fault, 'http'] as const),
  ...['drop-before', 'truncated', 'string-result'].map((fault) => [fault, 'https'] as const),
];

describe('the sandbox', () => {
  it.each(CASES)('with the fault %s over %s gives the outcome of the table', async (fault, scheme) => {
    const expected = OUTCOMES[fault as FaultKind];
    const sandbox = await startSandbox({
      accounts: [{ platformId: 7, secretKey: SECRET_KEY }],
      faults: [{ kind: fault as FaultKind, ...(fault.startsWith('latency') ? { delayMs: 300 } : {}) }],
      ...(scheme === 'https' ? { tls } : {}),
    });
    try {
      const ca = scheme === 'https' ? tls.cert : undefined;
      const client = clientOf(
        { baseUrl: sandbox.url, ca },
        { platformId: 7, secretKey: SECRET_KEY, withdrawTimeoutMs: WITHDRAW_TIMEOUT_MS },
      );
      const outcome = await client.withdraw(REQUEST);
      expect({ kind: outcome.kind, payments: sandbox.payments().length }).toEqual(expected);
      // Exactly one request: nothing is followed, nothing is tried again.
      expect(sandbox.stats().calls.withdraw).toBe(1);
    } finally {
      await sandbox.close();
    }
  });
});
