import { explorersField, proxiesField } from '../serving-fields.js';
import type { SettingTable } from '../setting.js';
import { port, text } from './rules.js';

export const DASHBOARD_SETTINGS = {
  /** Address of the dashboard. One that other machines can reach needs a password. */
  dashboardHost: { section: 'serving', variable: 'DASHBOARD_HOST', rule: text, default: '127.0.0.1' },
  /** Port of the dashboard; 0 takes a free one. */
  dashboardPort: { section: 'serving', variable: 'DASHBOARD_PORT', rule: port, default: 3_000 },
  /** User name of the dashboard's basic authentication. */
  dashboardUser: {
    section: 'serving',
    variable: 'DASHBOARD_USER',
    rule: text,
    absent: '`payouts`',
    example: 'payouts',
  },
  /** Password of the dashboard's basic authentication. At least 12 characters if other machines can reach it. */
  dashboardPassword: {
    section: 'serving',
    variable: 'DASHBOARD_PASSWORD',
    rule: text,
    secret: true,
    absent: 'none is asked for, on loopback only',
    example: './secrets/dashboard-password.txt',
  },
  /** Proxies in front of the dashboard whose `X-Forwarded-For` names the client, separated by commas: addresses, networks such as `10.0.0.0/8`, or `loopback`. Without it, all users behind a proxy wait after one user's wrong passwords. */
  dashboardTrustedProxies: {
    section: 'serving',
    variable: 'DASHBOARD_TRUSTED_PROXIES',
    rule: proxiesField,
    absent: 'the client is who connects',
  },
  /** Block explorers by currency (payment_id), for links from a txhash: entries such as `6=https://explorer.example/tx/{txhash}`, separated by commas. */
  explorers: {
    section: 'serving',
    variable: 'PAYOUT_EXPLORERS',
    rule: explorersField,
    absent: 'no links',
  },
} as const satisfies SettingTable;
