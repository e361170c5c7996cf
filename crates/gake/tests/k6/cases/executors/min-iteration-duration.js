export const options = { minIterationDuration: '300ms', iterations: 3 };
export default function () {
  
}
