// A tag of the run named scenario holds where there is no scenario; one that names the default
// function is described with it.
import { Counter } from 'k6/metrics';

const calls = new Counter('calls');
export const options = {
  tags: { scenario: 'own' },
  scenarios: { one: { executor: 'shared-iterations', exec: 'default' } },
  thresholds: { 'calls{scenario:own}': ['count==2'], 'calls{scenario:one}': ['count==1'] },
};

export function setup() {
  calls.add(1);
}

export default function () {
  calls.add(1);
}

export function teardown() {
  calls.add(1);
}
