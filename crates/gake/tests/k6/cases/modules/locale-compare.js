const WORDS = [
  'résumé', 'resume', 'Resume', 'Résumé', 'role', 'roles', 'rôle', 'a-b', 'ab', 'aB', 'Ab', 'a b',
  'AB', 'co-op', 'coop', 'CO-OP', 'Ab-c', 'æ', 'ae', 'af', 'ß', 'ss', 'st', 'œ', 'oe', 'of', '10',
  '9', '1', '日', '本', 'ж', 'Ж', 'α', 'β', 'ё', 'е', 'я', 'ﬁ', 'fi', '½', '²', '2', '3', 'áb', 'ac',
  'ñ', 'n', 'o', 'å', 'z', 'ø', 'ł', 'đ', 'd', 'e', 'l', 'm', '', '😀', '😁', 'Zoë', 'Zoe', 'zoé',
];

export default function () {
  const compare = (a, b) => a.localeCompare(b);
  console.log([...WORDS].sort(compare).join('|'));
  const ascii = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at));
  console.log(ascii.sort(compare).join(''));
  for (const [a, b] of [['a', 'a'], ['a\u0301', '\u00e1'], ['a\u0001', 'a'], ['', 'a'], ['b', 'a']]) {
    console.log(a.localeCompare(b));
  }
  console.log('10'.localeCompare('2', undefined, { numeric: true }), 'u'.localeCompare());
}
