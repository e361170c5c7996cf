// env: TZ=Europe/Paris
function tried(name, f) {
  try {
    console.log(name, String(f()));
  } catch (error) {
    console.log(name, `${error.name}: ${error.message}`);
  }
}

const WAYS = [
  'toString', 'toDateString', 'toTimeString', 'toISOString', 'toUTCString', 'toLocaleString',
  'toLocaleDateString', 'toLocaleTimeString', 'toJSON', 'getTimezoneOffset',
];

export default function () {
  const dates = [
    new Date(Date.UTC(2024, 1, 29, 13, 4, 5, 67)),
    new Date(Date.UTC(2024, 6, 2, 22, 4, 5)),
    new Date(Date.UTC(2024, 0, 2, 0, 4, 5)),
    new Date(NaN),
  ];
  for (const date of dates) for (const way of WAYS) tried(way, () => date[way]());
  tried('locale', () => dates[0].toLocaleString('en-US', { timeZone: 'America/New_York' }));
  tried('array', () => [1234.5, dates[0], 'x', null].toLocaleString());
  tried('number', () => (1234567.891).toLocaleString());
  tried('Intl', () => typeof Intl);
  tried('template', () => `${dates[0]}`);
}
