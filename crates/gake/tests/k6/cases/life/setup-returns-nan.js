export function setup() { return NaN; }
export default function () {
  
}
