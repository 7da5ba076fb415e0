import type { Scene } from '../scene.js';
import { COMMANDS } from './commands.js';
import { CUTS } from './cuts.js';
import { FAILOVERS } from './failovers.js';
import { POLICED } from './policed.js';

export const SCENES: readonly Scene[] = [...CUTS, ...COMMANDS, ...POLICED, ...FAILOVERS];

export const SHORT_SCENES = SCENES.filter(({ isShort }) => isShort);
