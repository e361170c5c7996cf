// args: --secret-source=mock=name=one,key=first1 --secret-source=mock=name=two,default,key=second2
import secrets from 'k6/secrets';
export default async function () {
  console.log((await secrets.source('one').get('key')) === ['first', 1].join(''));
  console.log((await secrets.get('key')) === ['second', 2].join(''));
  const none = secrets.source('none');
  console.log(typeof none.get);
  for (const bad of [() => none.get('key'), () => secrets.source('one').get('nope')]) {
    try { await bad(); } catch (error) { console.log('rejected'); }
  }
}
