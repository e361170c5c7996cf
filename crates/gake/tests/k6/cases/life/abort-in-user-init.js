import exec from 'k6/execution';

if (__VU > 0) exec.test.abort('no user');

export default function () {}
