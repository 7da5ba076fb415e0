import { describe, expect, it } from '@jest/globals';
import { parseOfficeHours } from '../../../src/control/policy/office-hours.js';

const at = (time: string): number => Date.parse(time);
const iso = (ms: number): string => new Date(ms).toISOString();

const BERLIN = parseOfficeHours('Mon-Fri 08:00-18:00, Sat 09:00-12:00 Europe/Berlin');
const NIGHT = parseOfficeHours('Sat-Sun 00:00-03:00 Europe/Berlin');

describe('office hours', () => {
  it.each([
    ['2026-11-23T06:59:59Z', false],
    ['2026-11-23T07:00:00Z', true],
    ['2026-11-23T16:59:59Z', true],
    ['2026-11-23T17:00:00Z', false],
    ['2026-11-28T08:00:00Z', true],
    ['2026-11-28T11:00:00Z', false],
    ['2026-11-29T09:00:00Z', false],
    ['2026-07-20T06:00:00Z', true],
    ['2026-07-20T16:00:00Z', false],
  ])('at %s: %s', (time, isOpen) => {
    expect(BERLIN.isOpen(at(time))).toBe(isOpen);
  });

  it.each([
    ['2026-11-23T10:00:00Z', '2026-11-23T10:00:00.000Z'],
    ['2026-11-23T18:30:00Z', '2026-11-24T07:00:00.000Z'],
    ['2026-11-27T18:00:00Z', '2026-11-28T08:00:00.000Z'],
    ['2026-11-28T12:00:00Z', '2026-11-30T07:00:00.000Z'],
    // The clocks change on this Sunday: Monday begins an hour later by UTC.
    ['2026-10-24T12:00:00Z', '2026-10-26T07:00:00.000Z'],
    ['2026-03-28T12:00:00Z', '2026-03-30T06:00:00.000Z'],
  ])('after %s open at %s', (time, opens) => {
    expect(iso(BERLIN.opensAt(at(time)))).toBe(opens);
  });

  it('open in the hour that the clocks show twice', () => {
    expect(iso(NIGHT.opensAt(at('2026-10-24T21:00:00Z')))).toBe('2026-10-24T22:00:00.000Z');
    expect(NIGHT.isOpen(at('2026-10-25T01:59:00Z'))).toBe(true);
    expect(NIGHT.isOpen(at('2026-10-25T02:00:00Z'))).toBe(false);
  });

  it('opens with the change of the clocks that leaves its beginning out', () => {
    const hours = parseOfficeHours('Sun 02:30-04:00 Europe/Berlin');
    expect(iso(hours.opensAt(at('2026-03-28T20:00:00Z')))).toBe('2026-03-29T01:00:00.000Z');
  });

  it.each([
    '',
    'Mon',
    'Mon-Fri Europe/Berlin',
    'Mon 8:00-9:00 UTC',
    'Mon 09:00-08:00 UTC',
    'Mon 08:00-25:00 UTC',
    'Mo 08:00-09:00 UTC',
    'Mon 08:00-09:00 Nowhere/Land',
    'Mon 08:60-09:00 UTC',
  ])('refuses %j and says what it must be', (text) => {
    expect(() => parseOfficeHours(text)).toThrow(/^must/);
  });
});
