import { SharedArray } from 'k6/data';
new SharedArray('users', () => 5);
export default function () {
  
}
