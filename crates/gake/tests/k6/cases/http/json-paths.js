import http from 'k6/http';
const PEOPLE = {
  name: { first: 'Tom', last: 'Anderson' },
  age: 37,
  children: ['Sara', 'Alex', 'Jack'],
  'fav.movie': 'Deer Hunter',
  friends: [
    { first: 'Dale', last: 'Murphy', age: 44, nets: ['ig', 'fb', 'tw'] },
    { first: 'Roger', last: 'Craig', age: 68, nets: ['fb', 'tw'] },
    { first: 'Jane', last: 'Murphy', age: 47, nets: ['ig', 'tw'] },
  ],
  tags: [['a'], ['b', 'c']],
  on: [true, false, null],
};
const PATHS = [
  'name.last', 'children.#', 'children.1', 'children.9', 'child*.2', 'c?ildren.0', 'fav\\.movie',
  'friends.#.first', 'friends.#(last=="Murphy").first', 'friends.#(last=="Murphy")#.first',
  'friends.#(age>45)#.last', 'friends.#(first%"D*").last', 'friends.#(first!%"D*").last',
  'friends.#(nets.#(=="fb"))#.first', 'children.#(%"*a*")#', 'children.#(>="Jack")', 'friends.#(nope)',
  'friends.#(nope)#', 'friends.#.nope', 'on.#(==true)', 'on.#(!=true)#', 'children|@reverse',
  'children.@reverse.0', 'name.@keys', 'name|@values|1', 'tags|@flatten', 'friends.#.nets|@flatten',
  'friends.#.nets.#', 'friends.#.first|#', '{name.first,age}', '{"who":name.first,nope}',
  '[name.first,age,nope]', 'friends.0.{first,age}', 'friends.#.{first}', 'nope.a.b', 'friends.#(age<50)#|0.first',
];
export default function () {
  const r = http.post(`${__ENV.URL}/echo`, JSON.stringify(PEOPLE));
  for (const path of PATHS) console.log(path, JSON.stringify(r.json(`body.@fromstr|${path}`)));
}
