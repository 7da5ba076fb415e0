import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'test/package', 'coverage', 'data', 'reports', '**/node_modules', '.stryker-tmp'] },
  ...tseslint.configs.strictTypeChecked.map((config) => ({ ...config, files: ['**/*.ts'] })),
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      // Node's test runner awaits its tests itself.
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: 'test', package: 'node:test' }] },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      'no-console': 'error',
      // There are none (`erasableSyntaxOnly`), and the rule takes a tenth of the time.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "MemberExpression[object.name='AbortSignal'][property.name='any']",
          message: 'Node 20 never collects it while one of the signals lives: use followSignals of src/base/clock.ts.',
        },
      ],
    },
  },
  {
    // Only config.ts reads the environment; only the command line owns signals and exit codes.
    files: ['src/**/*.ts'],
    ignores: ['src/base/config.ts', 'src/cli/**'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Read the environment in src/base/config.ts only.' },
        { object: 'process', property: 'exit', message: 'Exit codes belong to src/cli.' },
        { object: 'process', property: 'on', message: 'Signals belong to src/cli.' },
      ],
    },
  },
);
