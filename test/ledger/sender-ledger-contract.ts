import { afterEach, beforeEach, describe } from '@jest/globals';
import { actRules } from './contract/act-rules.js';
import { approvalRules } from './contract/approval-rules.js';
import { beginRules } from './contract/begin-rules.js';
import { breakerRules } from './contract/breaker-rules.js';
import { finishRules } from './contract/finish-rules.js';
import { holdRules } from './contract/hold-rules.js';
import { leaseRules } from './contract/lease-rules.js';
import type { LedgerRig } from './contract/ledger-rig.js';
import { recoveryRules } from './contract/recovery-rules.js';
import { severalAttemptsRules } from './contract/several-attempts-rules.js';

/**
 * Every rule of the port `SenderLedger`. What runs on one ledger that passes runs on every other: that is why the
 * simulation may use one in memory.
 * @param makeRig - makes an empty ledger; called before each test, closed after it
 */
export function senderLedgerContract(name: string, makeRig: () => LedgerRig): void {
  describe(`${name} keeps the sender's rules`, () => {
    let rig: LedgerRig;
    beforeEach(() => {
      rig = makeRig();
    });
    afterEach(async () => rig.close());

    const all = [
      leaseRules,
      beginRules,
      finishRules,
      breakerRules,
      holdRules,
      recoveryRules,
      severalAttemptsRules,
      actRules,
      approvalRules,
    ];
    for (const rules of all) rules(() => rig);
  });
}
