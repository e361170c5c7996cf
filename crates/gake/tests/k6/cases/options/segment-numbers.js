// Users and iterations of a segment have the numbers that they have in the whole test.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
const users = new Counter('users');
const iterations = new Counter('numbers');
const here = new Counter('here');
const plain = (startTime) => ({ executor: 'per-vu-iterations', vus: 7, iterations: 2, startTime });
export const options = {
  executionSegment: '1/3:2/3',
  executionSegmentSequence: '0,1/3,2/3,1',
  scenarios: {
    a: plain('0s'),
    b: { executor: 'shared-iterations', vus: 5, iterations: 13, startTime: '500ms' },
    c: {
      executor: 'constant-arrival-rate', rate: 21, duration: '1010ms', preAllocatedVUs: 12,
      startTime: '1s',
    },
    d: { executor: 'constant-vus', vus: 4, duration: '1050ms', startTime: '2500ms' },
  },
};
for (const name of ['a', 'b', 'c', 'd']) {
  options.thresholds = options.thresholds || {};
  options.thresholds[`numbers{scenario:${name}}`] = ['count>=0'];
}
options.thresholds['users{scenario:a}'] = ['count==8'];
export default function () {
  // Which user runs an iteration is k6's choice, but for their rest by the number of segments.
  users.add(exec.vu.idInTest % 3);
  iterations.add(exec.scenario.iterationInTest);
  here.add(exec.scenario.iterationInInstance);
  sleep(0.1);
}
