export default function () {
  console.log(new Error('x').message, () => 1, new Date(0), /re/, Symbol('s').toString(), 10n.toString(), -0, 1e21, NaN);
}
