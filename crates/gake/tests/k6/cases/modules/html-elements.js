import { parseHTML } from 'k6/html';
export default function () {
  const d = parseHTML('<select name=n><option value=1>x<option>y</select><form><input type=submit name=q value=1><input type=file name=f value=2><input type=reset name=rs value=2><input type=button name=bb value=2><input type=image name=im value=2><input name="" value=1><input value=3><input type=hidden name=h value=4><input type=radio name=ra checked="checked"></form><p class="k l" data-t=true data-f=false data-n=null data-z=012 data-e=1e3>');
  const log = (name, read) => {
    try {
      const value = read();
      console.log(name, typeof value, typeof value === 'object' ? JSON.stringify(value) : value);
    } catch (error) {
      console.log(name, 'throws', String(error));
    }
  };
  log('valsel', () => d.find('select').val());
  log('sA', () => d.find('select').serializeArray());
  log('sF', () => d.find('form').serializeArray());
  log('dat', () => [d.find('p').data('t'),d.find('p').data('f'),d.find('p').data('n'),d.find('p').data('z'),d.find('p').data('e')]);
  log('idx', () => d.find('form').index());
  log('idx2', () => d.find('option').index(d.find('option').eq(1)));
  log('idx3', () => d.find('option').index('nope'));
  log('add', () => d.find('form').add('p').size());
  log('sib', () => d.find('form').siblings().size());
  log('cls', () => d.find('p').get(0).classList());
  log('attrs', () => Object.keys(d.find('p').get(0).attributes()).sort());
  log('ga', () => d.find('p').get(0).getAttribute('zz'));
  log('ts', () => d.find('p').get(0).toString());
  log('inner', () => d.find('select').get(0).innerHTML());
  log('par', () => d.find('option').get(0).parentNode().nodeName());
  log('qs', () => d.find('form').get(0).querySelector('input').getAttribute('name'));
  log('qsa', () => d.find('form').get(0).querySelectorAll('input').length);
  log('val', () => d.find('input').get(0).value());
  log('kids', () => d.find('form').get(0).children().length);
  log('nv', () => d.find('option').get(0).firstChild().nodeValue());
  log('nn', () => d.find('option').get(0).firstChild().nodeName());
  log('form', () => d.find('input').get(0).form().nodeName());
  log('seleach', () => d.find('option').each((i,e)=>{console.log(i, e.value(), e.text(), e.selected())}).size());
}
