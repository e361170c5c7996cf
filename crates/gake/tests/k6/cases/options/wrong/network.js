export const options = { blacklistIPs: ['127.0.0.1'] };
export default function () {}
