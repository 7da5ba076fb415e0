/** The account of the demo, at its own gateway. */
export const DEMO_PLATFORM_ID = 1001;
