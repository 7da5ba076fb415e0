import Runner from 'jest-runner';

/** Jest's own runner, but one file at a time, and none of another runner meanwhile. */
export default class SerialRunner extends Runner {
  isSerial = true;
}
