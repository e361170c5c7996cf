export default async function () { throw new Error('rejected'); }
