/** The dashboard: payout pages and Bull Board, both read-only, and the one write that takes signed approvals. */
export { createDashboard, type Dashboard, type DashboardOptions } from './create-dashboard.js';
export { startDashboard, type DashboardServer, type DashboardServerOptions } from './start-dashboard.js';
