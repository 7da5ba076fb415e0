/** The dashboard: read-only payout pages and Bull Board, and one write, which takes signed approvals. */
export { createDashboard, type Dashboard, type MountedDashboardOptions } from './create-dashboard.js';
export type { DashboardOptions } from './dashboard-options.js';
export { startDashboard, type DashboardServer, type DashboardServerOptions } from './start-dashboard.js';
