// Checks are counted, and have no name.
import { check } from 'k6';
export const options = { systemTags: ['status', 'method'] };
export default function () {
  check(1, { one: true, two: (value) => value === 2, 'of a bad one': (value) => value.x.y });
}
