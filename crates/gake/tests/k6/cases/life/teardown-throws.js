export default function () {
  
}
export function teardown() { throw new Error('no teardown'); }
