// CommonJS: `import.meta` cannot be compiled to CommonJS, and ES modules have no `__dirname`. The build replaces this file
// by one that has the texts in it, so that an application may bundle the package.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

exports.sourcePath = (path) => join(__dirname, '..', path);
exports.readSource = (path) => readFileSync(exports.sourcePath(path), 'utf8');
