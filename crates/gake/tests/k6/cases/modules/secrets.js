// args: --secret-source=mock=default,a=one1,b=two2
import secrets from 'k6/secrets';
export default async function () {
  console.log(await secrets.get('a'), (await secrets.get('b')).length);
  const source = await secrets.source('default');
  console.log(await source.get('b'));
  for (const bad of [() => secrets.get('zz'), async () => (await secrets.source('x')).get('a')]) {
    try { await bad(); } catch (error) { console.log(String(error)); }
  }
  console.log('one1 in a text');
}
