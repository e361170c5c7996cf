// args: --no-summary
export default function () {
  
}
