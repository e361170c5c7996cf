exports.options = { iterations: 3 };
exports.default = function () { console.log('x'); };
