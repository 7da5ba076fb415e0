// CommonJS: `import.meta` cannot be compiled to CommonJS, and ES modules have no `__dirname`.
const { join } = require('node:path');

exports.sourcePath = (path) => join(__dirname, '..', path);
