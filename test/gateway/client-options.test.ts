import { expect, it } from '@jest/globals';
import { InvalidInputError } from '../../src/base/errors.js';
import { clientOf, SECRET_KEY } from './support/test-client.js';

const GATEWAY = { baseUrl: 'https://gateway.example' };

it.each(['timeoutMs', 'withdrawTimeoutMs', 'connectTimeoutMs'])('%s must be a time that a timer can wait', (option) => {
  for (const ms of [0, -1, 1.5, 1e10, 2 ** 31, Number.NaN, Number.POSITIVE_INFINITY, '30000']) {
    const make = (): unknown => clientOf(GATEWAY, { [option]: ms });
    expect(make).toThrow(InvalidInputError);
    expect(make).toThrow(new RegExp(`^${option}: must be a whole number from 1 to 2147483647 \\(got `));
  }
  for (const ms of [1, 2 ** 31 - 1, undefined]) clientOf(GATEWAY, { [option]: ms }).close();
});

it('an error does not show the secret key', () => {
  const make = (): unknown => clientOf({ baseUrl: 'http://gateway.example' }, { platformId: 0, timeoutMs: 0 });
  expect(make).toThrow(/platformId: .*; baseUrl: .*; timeoutMs: /);
  expect(make).not.toThrow(new RegExp(SECRET_KEY));
});
