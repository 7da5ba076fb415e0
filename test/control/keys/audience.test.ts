import { describe, expect, it } from '@jest/globals';
import { checkAudience, openAudience } from '../../../src/control/keys/audience.js';
import { audienceOf } from '../../../src/base/settings.js';
import { InvalidConfigError } from '../../../src/base/errors.js';

describe('audienceOf', () => {
  it.each([
    'https://gateway.example',
    'https://gateway.example/',
    'https://GATEWAY.Example',
    'HTTPS://gateway.example:443',
    'https://gateway.example:443//',
  ])('is the same however the URL is spelt: %s', (baseUrl) => {
    expect(audienceOf({ platformId: 4242, baseUrl })).toBe('https://gateway.example#4242');
  });

  it.each([
    ['another host', 'https://staging.gateway.example'],
    ['another port', 'https://gateway.example:8443'],
    ['another path', 'https://gateway.example/v2'],
    ['no TLS', 'http://localhost'],
  ])('is another one with %s', (_, baseUrl) => {
    expect(audienceOf({ platformId: 4242, baseUrl })).not.toBe('https://gateway.example#4242');
  });

  it('is another one for another account', () => {
    expect(audienceOf({ platformId: 4243, baseUrl: 'https://gateway.example' })).toBe('https://gateway.example#4243');
  });

  it('is what the setting says', () => {
    expect(audienceOf({ platformId: 1, baseUrl: 'https://gateway.example', audience: 'production' })).toBe(
      'production',
    );
  });

  it.each([
    ['nothing says it', {}, /^PAYOUT_AUDIENCE: is required, or GATEWAY_BASE_URL/],
    ['it is empty', { audience: '' }, /^PAYOUT_AUDIENCE: is not valid: it must be 1 to 200/],
    ['it has spaces', { audience: 'my gateway' }, /\(got "my gateway"\)$/],
    ['it is not ASCII', { audience: 'pröd' }, /must be 1 to 200 printable characters/],
    ['it is too long', { audience: 'x'.repeat(201) }, /must be 1 to 200 printable characters/],
    [
      'the URL is too long for a default',
      { baseUrl: `https://gateway.example/${'x'.repeat(200)}` },
      /^PAYOUT_AUDIENCE: is required, because GATEWAY_BASE_URL is too long/,
    ],
  ])('is refused where %s', (_, source, message) => {
    const read = (): string => audienceOf({ platformId: 1, ...source });
    expect(read).toThrow(InvalidConfigError);
    expect(read).toThrow(message);
  });
});

describe('checkAudience', () => {
  const clock = { now: 0, wallNow: () => clock.now };
  const UNTIL = '2030-01-31T09:00:00Z';
  const strict = openAudience('production', undefined, clock);
  const lenient = openAudience('production', UNTIL, clock);

  it('takes this environment only, and names both', () => {
    expect(checkAudience('production', strict)).toBeUndefined();
    const message = expect.stringContaining('it is signed for "staging", and this is "production"');
    expect(checkAudience('staging', strict)).toEqual({ fault: 'wrong_audience', message });
    expect(checkAudience('Production', lenient)?.fault).toBe('wrong_audience');
    expect(checkAudience('', lenient)?.fault).toBe('wrong_audience');
  });

  it('shows nothing that is no audience', () => {
    expect(checkAudience('\u001b[2Jproduction', strict)?.message).toContain('it is signed for another audience, and');
  });

  it('takes what names none until the time of the setting, and never without it', () => {
    clock.now = Date.parse(UNTIL) - 1;
    expect(checkAudience(undefined, lenient)).toBeUndefined();
    expect(checkAudience(undefined, strict)?.fault).toBe('no_audience');
    clock.now += 1;
    expect(checkAudience(undefined, lenient)?.message).toMatch(/PAYOUT_ACCEPT_UNBOUND_UNTIL/);
  });
});
