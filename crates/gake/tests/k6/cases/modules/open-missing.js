open('./gone.txt');
export default function () {
  
}
