export default function () {
  
}
export function handleSummary(data) { throw new Error('no summary'); }
