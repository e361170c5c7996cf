export function setup() { return { s: 1 }; }
export default function () {
  
}
export function handleSummary(data) { return { stdout: JSON.stringify(data.setup_data) + ' ' + data.root_group.name + '|\n', stderr: 'on stderr\n' }; }
