export default function () {
  
}
export function handleSummary(data) {}
