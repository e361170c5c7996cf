// part of modules/links
exports.depth = 1;
require('./thrower.cjs');
