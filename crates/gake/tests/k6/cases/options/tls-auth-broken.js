const pem = (what) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----`;

export const options = {
  tlsAuth: [{ domains: ['a.test'], cert: pem('CERTIFICATE'), key: pem('PRIVATE KEY') }],
};

export default function () {}
