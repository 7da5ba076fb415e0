import { rm } from 'node:fs/promises';

// Files of deleted modules would be published, and could still be imported.
await rm(new URL('../dist', import.meta.url), { recursive: true, force: true });
