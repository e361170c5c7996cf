import secrets from 'k6/secrets';
export default async function () {
  try { await secrets.get('a'); } catch (error) { console.log(String(error)); }
}
