import { itHolds, read, readTable, sectionsOf, sentencesOf } from './support/held-sentences.js';

/** Each sentence of the page that promises names the tests that hold it. */

const listed = readTable('test/docs/promises.txt');

/** They say on what the promises stand, and where they end. */
const LEFT_OUT = ['Assumptions', 'Not promised'];
/** Of a section: which test files it has, one subject a line. */
const OF_TESTS =
  /^(Tests:|- (identity|look-ups|journals and disks|objections and adoption|operators|Redis|processes): )/;

const sentences = sectionsOf(read('docs/guarantees.md'))
  .filter(({ title = '' }) => !LEFT_OUT.includes(title))
  .flatMap(({ lines }) => lines.filter((line) => !OF_TESTS.test(line)).flatMap(sentencesOf));

itHolds(sentences, listed, 100);
