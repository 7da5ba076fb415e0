// The rules, with their reasons, are in scripts/rooms.ts and scripts/import-rules.ts: `npm run imports` loads both.
import { roomRules, SPECIAL_RULES } from './scripts/import-rules.ts';

export default {
  forbidden: [...roomRules(), ...SPECIAL_RULES],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
};
