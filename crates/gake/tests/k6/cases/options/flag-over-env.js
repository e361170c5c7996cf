// args: -i 6
// env: K6_ITERATIONS=4
export default function () {
  
}
