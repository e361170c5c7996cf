// args: --features freeze-env,merge-run-tags --features zz --tag c=2
import exec from 'k6/execution';
export const options = { tags: { a: '1', c: '1' } };
export default function () {
  try { __ENV.NEW = 'x'; } catch (e) { console.log(e.name); }
  const tags = exec.vu.metrics.tags;
  console.log(__ENV.NEW, tags.a, tags.c, tags.k6_feature_freeze_env, tags.k6_feature_merge_run_tags);
}
