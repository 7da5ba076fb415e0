import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { createGatewayClient } from '../../src/gateway/gateway-client.js';
import { silentLogger } from '../../src/base/logger.js';
import { startSandbox, type FaultKind } from '../../src/sandbox/index.js';
import { makeSelfSignedCertificate } from './support/self-signed-certificate.js';

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

describe.each(['http', 'https'])('over %s', (scheme) => {
  it.each(Object.entries(OUTCOMES))('the fault %s gives the outcome of the table', async (fault, expected) => {
    const sandbox = await startSandbox({
      accounts: [{ platformId: 7, secretKey: SECRET_KEY }],
      faults: [{ kind: fault as FaultKind, ...(fault.startsWith('latency') ? { delayMs: 300 } : {}) }],
      ...(scheme === 'https' ? { tls } : {}),
    });
    try {
      const client = createGatewayClient({
        baseUrl: sandbox.url,
        platformId: 7,
        secretKey: SECRET_KEY,
        withdrawTimeoutMs: WITHDRAW_TIMEOUT_MS,
        logger: silentLogger,
        clock: systemClock,
        ...(scheme === 'https' ? { ca: tls.cert } : {}),
      });
      const outcome = await client.withdraw(REQUEST);
      expect({ kind: outcome.kind, payments: sandbox.payments().length }).toEqual(expected);
      // Exactly one request: nothing is followed, nothing is tried again.
      expect(sandbox.stats().calls.withdraw).toBe(1);
    } finally {
      await sandbox.close();
    }
  });
});
