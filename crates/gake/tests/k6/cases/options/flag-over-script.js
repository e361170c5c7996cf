// args: -i 5
export const options = { vus: 5, duration: '10s' };
export default function () {
  
}
