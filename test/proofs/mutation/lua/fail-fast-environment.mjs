import { TestEnvironment } from 'jest-environment-node';

/** Skips every test after the first that failed: one is enough to have noticed a mutant. */
export default class FailFastEnvironment extends TestEnvironment {
  #hasFailed = false;

  handleTestEvent(event) {
    if (event.name === 'test_fn_failure' || event.name === 'hook_failure') this.#hasFailed = true;
    if (event.name === 'test_start' && this.#hasFailed) event.test.mode = 'skip';
  }
}
