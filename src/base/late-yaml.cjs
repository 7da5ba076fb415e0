// CommonJS: `require` works in the middle of synchronous code. A process without a file in YAML never loads it.
exports.loadYaml = () => require('yaml');
