// args: -u 3
export default function () {
  
}
