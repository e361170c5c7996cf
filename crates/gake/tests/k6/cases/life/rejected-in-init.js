(async () => { throw new Error('no start'); })();
export default function () {}
