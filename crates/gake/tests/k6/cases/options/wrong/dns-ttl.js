export const options = { dns: { ttl: '1x' } };
export default function () {}
