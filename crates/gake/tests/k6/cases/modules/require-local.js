const { twice } = require('./lib.js');
export default function () { console.log(twice(4)); }
