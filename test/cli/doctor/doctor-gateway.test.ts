import { describe, expect, it } from '@jest/globals';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { NO_SENDER, problemOf, useDoctor } from '../support/doctor-rig.js';

const doctor = useDoctor();

describe('payouts doctor finds, in the gateway:', () => {
  it('a wrong key', async () => {
    const { code, found } = await doctor.findings({ GATEWAY_SECRET_KEY: 'another-key' });
    expect([code, found]).toEqual([1, [problemOf('gateway account', 'wrong signature'), NO_SENDER]]);
  });

  it('a gateway that cannot be reached', async () => {
    const { code, found } = await doctor.findings({ GATEWAY_BASE_URL: `http://127.0.0.1:${await findFreePort()}` });
    expect([code, found]).toEqual([1, [problemOf('gateway connection', 'ECONNREFUSED'), NO_SENDER]]);
  });

  it('a server that is not the gateway', async () => {
    doctor.sandbox.setFaults([{ kind: 'wrong-json', endpoint: 'any' }]);
    const { code, found } = await doctor.findings();
    doctor.sandbox.setFaults([]);
    expect([code, found]).toEqual([1, [problemOf('gateway account', 'not as documented'), NO_SENDER]]);
  });
});
