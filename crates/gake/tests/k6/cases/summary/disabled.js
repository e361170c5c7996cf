// args: --summary-mode disabled
export default function () {
  
}
