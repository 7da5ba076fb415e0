import { describe, expect, it } from '@jest/globals';
import { readConfig } from '../src/base/config.js';
import { explorersField, proxiesField } from '../src/base/settings.js';

describe('PAYOUT_EXPLORERS', () => {
  it('is a template of each currency', () => {
    const text = '6=https://tronscan.org/#/transaction/{txhash}, 1=https://explorer.example/tx?id={txhash}&chain=btc';
    expect([...explorersField.parse(text)]).toEqual([
      [6, 'https://tronscan.org/#/transaction/{txhash}'],
      [1, 'https://explorer.example/tx?id={txhash}&chain=btc'],
    ]);
  });

  it.each([
    ['6=http://explorer.example/{txhash}', 'must be a URL of https://'],
    ['6=javascript:alert(1)//{txhash}', 'must be a URL of https://'],
    ['6=https://{txhash}.example/', 'must be a URL of https://, with {txhash} behind the host'],
    ['6=https://user@explorer.example/{txhash}', 'must be a URL of https://'],
    ['6=https://explorer.example:99999/{txhash}', 'must be a URL of https://'],
    ['6=https://explorer.example/', 'must contain {txhash} once'],
    ['6=https://explorer.example/{txhash}/{txhash}', 'must contain {txhash} once'],
    ['six=https://explorer.example/{txhash}', 'must be entries such as 6='],
    ['https://explorer.example/{txhash}', 'must be entries such as 6='],
    ['6=https://a.example/{txhash},6=https://b.example/{txhash}', 'names a payment_id twice'],
    ['6=https://a.example/{txhash},', 'must be entries such as 6='],
  ])('refuses %s', (text, message) => {
    expect(() => readConfig(['PAYOUT_EXPLORERS'], { PAYOUT_EXPLORERS: text })).toThrow(`PAYOUT_EXPLORERS: ${message}`);
  });
});

describe('DASHBOARD_TRUSTED_PROXIES', () => {
  it('is addresses and networks', () => {
    const text = 'loopback, 10.0.0.0/8,192.0.2.1,2001:db8::/32';
    expect(proxiesField.parse(text)).toEqual(['loopback', '10.0.0.0/8', '192.0.2.1', '2001:db8::/32']);
  });

  it.each([
    'true',
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0.0/8/8',
    'proxy.example',
    '10.0.0',
    '10.0.0.0/',
    'loopback,',
  ])('refuses %s', (text) => {
    const read = (): unknown => readConfig(['DASHBOARD_TRUSTED_PROXIES'], { DASHBOARD_TRUSTED_PROXIES: text });
    expect(read).toThrow('DASHBOARD_TRUSTED_PROXIES: must be addresses, networks such as 10.0.0.0/8, or loopback');
  });
});
