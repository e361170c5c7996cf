// env: GAKE_K6_VERSION=1.8
// args: --no-summary
export default function () {
  
}
