import { parseHTML } from 'k6/html';
export default function () {
  const form = parseHTML('<form><input name=a value=1><input type=checkbox name=c checked>'
    + '<input type=checkbox name=d checked="checked" value=7><select name=s><option value=1>x'
    + '<option value=2 selected>y</select><textarea name=t>tt</textarea>'
    + '<input type=submit name=sub value=S><input disabled name=dis value="1 &amp;"></form>').find('form');
  for (const { name, value } of form.serializeArray()) console.log(name, value);
  console.log(form.serialize(), form.serializeObject().s);
}
