// A check whose tag `group` is no path counts to the root group.
import { check, group } from 'k6';

export default function () {
  check(1, { plain: () => true }, { group: 'plain' });
  check(1, { path: () => true }, { group: '::path' });
  check(1, { outer: () => false }, { group: 'outer::inner::deep' });
  group('in', () => {
    check(1, { inside: () => true }, { group: 'plain' });
    check(1, { empty: () => true }, { group: '' });
  });
  check(1, { plain: () => true });
}
