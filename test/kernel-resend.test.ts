import { expect, it } from '@jest/globals';
import {
  connectionResendsForMs,
  readKernelRetries,
  resendsForMs,
  unknownResendsForMs,
} from '../src/base/kernel-resend.js';

// https://docs.kernel.org/networking/ip-sysctl.html gives 924.6 s for 15 tries. RFC 1122 asks for 100 s, which 8 tries take.
it.each([
  [{ retries: 15, orphanRetries: 8 }, 924_600],
  [{ retries: 8, orphanRetries: 8 }, 102_200],
  [{ retries: 6, orphanRetries: 6 }, 25_400],
  [{ retries: 6, orphanRetries: 8 }, 102_200],
  [{ retries: 9, orphanRetries: 1 }, 204_600],
  [{ retries: 10, orphanRetries: 1 }, 324_600],
])('a kernel with %j sends again for %i ms', (retries, ms) => {
  expect(resendsForMs(retries)).toBe(ms);
});

it('a slow connection is tried for the first time later, and a host has nothing to send to itself again', () => {
  const retries = { retries: 6, orphanRetries: 6 };
  const of = (remoteAddress: string | undefined, connectedInMs: number) =>
    connectionResendsForMs({ remoteAddress, connectedInMs }, retries);
  expect(of('192.0.2.1', 0)).toBe(25_800);
  expect(of('2001:db8::1', 1_000)).toBe(32_800);
  // The address of a socket that is closed already is not known.
  expect(of(undefined, 0)).toBe(25_800);
  for (const own of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) expect(of(own, 1_000)).toBe(0);
});

it('a kernel that nobody can ask is taken for the slowest', () => {
  expect(unknownResendsForMs(10_000)).toBe(995_000);
});

it('the kernel of this host says how often it tries', () => {
  const { retries, orphanRetries } = readKernelRetries();
  expect(Number.isSafeInteger(retries) && Number.isSafeInteger(orphanRetries)).toBe(true);
  expect(Math.min(retries, orphanRetries)).toBeGreaterThan(0);
});
