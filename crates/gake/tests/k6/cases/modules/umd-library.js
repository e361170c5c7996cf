// part of other scripts
// import nothing; export nothing: this is a universal module
(function (root, factory) {
  if (typeof define === 'function' && define.amd) {
    define([], factory);
  } else if (typeof module === 'object' && typeof exports !== 'undefined') {
    module.exports = factory();
  } else {
    root.Library = factory();
  }
})(this, function () {
  'use strict';
  var global = (function () {
    if (typeof self !== 'undefined') return self;
    if (typeof window !== 'undefined') return window;
    if (typeof global !== 'undefined') return global;
    return {};
  })();
  function Library(text) { this.text = text; }
  Library.prototype = {
    parse: function () { return this.text.split(/(?<=;)(?!$)/).map(function (one) { return one.replace(/;$/, ''); }); },
    get length() { return this.text.length; },
  };
  Object.defineProperty(Library, 'version', { enumerable: true, get: function () { return '1.0'; } });
  Library[Symbol.for('kind')] = typeof global;
  return Library;
});
