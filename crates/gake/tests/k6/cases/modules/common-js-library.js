// part of other scripts
var counter = 1;
exports.count = function () { return ++counter; };
exports.kind = typeof this;
exports.same = this === exports;
exports.self = module.exports === exports;
exports.default = 'named default';
