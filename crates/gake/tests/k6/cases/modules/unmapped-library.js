// part of modules/mapped
exports.fail = function () { throw new Error("unmapped"); };
//# sourceMappingURL=gone.js.map