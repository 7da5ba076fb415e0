import { itHolds, read, readTable, sectionsOf, sentencesOf } from './support/held-sentences.js';

/** Each sentence about failovers outside of docs/guarantees.md names the tests that hold it. */

const listed = readTable('test/docs/failover-sentences.txt');

/** Of docs/redis.md: in these each sentence is about failovers. */
const WHOLE = ['Replicas', 'Acknowledged changes', 'Failover'];
/** What documentation of others says, and names. */
const LEFT_OUT = ['Managed services', 'Keys'];
const ABOUT_FAILOVERS = /failover|replica/i;

const sentences = ['redis', 'http', 'notifications'].flatMap((name) =>
  sectionsOf(read(`docs/${name}.md`).replace(/^```.*?^```$/gms, ''), /\n(?=#{2,3} )/)
    .filter(({ title = '' }) => !LEFT_OUT.includes(title))
    .flatMap(({ title = '', lines }) => {
      const all = lines.filter((line) => !line.startsWith('|')).flatMap(sentencesOf);
      return name === 'redis' && WHOLE.includes(title) ? all : all.filter((each) => ABOUT_FAILOVERS.test(each));
    }),
);

itHolds(sentences, listed, 40);
