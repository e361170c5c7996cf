import { setTimeout, clearTimeout } from 'k6/timers';
export default function () {
  const id = setTimeout(() => console.log('never'), 50); clearTimeout(id); setTimeout(() => console.log('yes'), 10);
}
