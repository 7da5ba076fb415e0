/** The dashboard: payout pages and Bull Board, both read-only. */
export { createDashboard, type Dashboard, type DashboardOptions } from './create-dashboard.js';
export { startDashboard, type DashboardServer, type DashboardServerOptions } from './start-dashboard.js';
