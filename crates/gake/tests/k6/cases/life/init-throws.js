throw new Error('in init');
export default function () {
  
}
