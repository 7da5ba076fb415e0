import Sequencer from '@jest/test-sequencer';

/** Begun last, each would run alone at the end. The slow ones are small files, and take minutes. */
const LONGEST = [
  'proofs/late/late.slow',
  'proofs/failover/sentinel.slow',
  'drills/drills.slow',
  'worker/process.slow',
  'told/told.slow',
  'proofs/simulation/simulation',
  'worker/process',
  'cli/keys/keys-command',
  'cli/doctor/doctor-findings',
].map((name) => `/test/${name}.test.ts`);

/** Jest begins with what took longest the last time; a fresh clone would begin with the largest files. */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const rank = ({ path, duration }) => {
      const place = duration === undefined ? LONGEST.findIndex((name) => path.endsWith(name)) : -1;
      return place === -1 ? LONGEST.length : place;
    };
    return super.sort(tests).sort((one, other) => rank(one) - rank(other));
  }
}
