import timers from 'k6/experimental/timers';
export default function () {}
