const { check } = require('k6');
module.exports.default = function () { check(1, { ok: true }); console.log(typeof module, typeof exports); };
