export default function () {
  
}
export function handleSummary(data) { return 5; }
