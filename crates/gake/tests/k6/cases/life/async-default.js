export default async function () { await Promise.resolve(); console.log('after'); }
