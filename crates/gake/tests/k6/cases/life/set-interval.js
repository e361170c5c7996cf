export default function () {
  let n = 0; const id = setInterval(() => { console.log(++n); if (n === 3) clearInterval(id); }, 10);
}
