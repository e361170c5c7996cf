export const options = { tlsCipherSuites: ['TLS_NOTHING'] };
export default function () {}
