import { rm } from 'node:fs/promises';

// Files of modules that are gone would be shipped, and imported by those who name them.
await rm(new URL('../dist', import.meta.url), { recursive: true, force: true });
