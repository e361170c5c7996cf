import x from './gone.js';
export default function () {
  
}
