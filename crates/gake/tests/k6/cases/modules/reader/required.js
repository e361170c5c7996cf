// part of open-elsewhere.js
const { read } = require('./reader.js');
exports.whole = read('own.txt');
exports.read = () => open('open.txt').trim();
