import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

const LOGS = new Set(['logger', 'log']);
const EXPLAINS = new Set(['unclear', 'olderCopy']);

/** Leaves what is said to operators as it is: no rule is in there. */
export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'messages', {
    shouldIgnore({ node, parent }) {
      if (isLogCall(node)) return 'it is only logged';
      if (node.type !== 'StringLiteral' && node.type !== 'TemplateLiteral') return undefined;
      if (parent.type === 'NewExpression' && parent.callee.name?.endsWith('Error')) return 'the text of an error';
      if (parent.type === 'CallExpression' && EXPLAINS.has(parent.callee.name)) return 'the text of a reason';
      if (parent.type === 'ObjectProperty' && parent.key.name === 'reason') return 'the text of a reason';
      return undefined;
    },
  }),
];

function isLogCall({ type, callee }) {
  if (type !== 'CallExpression' || callee.type !== 'MemberExpression') return false;
  const { object } = callee;
  return LOGS.has(object.type === 'MemberExpression' ? object.property.name : object.name);
}
