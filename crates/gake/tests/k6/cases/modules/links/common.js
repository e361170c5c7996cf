// part of modules/links
order.push('common');
exports.two = require('./late.js').three - 1;
