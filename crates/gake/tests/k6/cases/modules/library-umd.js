// part of library-bundles.js: a universal module, as parsers and polyfills are published
!function (root, factory) {
  if (typeof define === "function" && define.amd) define([], factory);
  else if (typeof module === "object" && typeof exports !== "undefined") module.exports = factory();
  else root.Rows = factory();
}(this, function factory() {
  "use strict";
  var global = typeof self !== "undefined" ? self : typeof window !== "undefined" ? window : void 0 !== global ? global : {};
  var hasWorker = !!global.document && !!global.postMessage;
  var everywhere = (function () { return this; })() || Function("return this")();
  function parse(text, config) {
    var rows = [], row = [], at = 0, isQuoted = false, field = "", delimiter = (config && config.delimiter) || ",";
    var bom = text.charCodeAt(0) === 0xfeff; if (bom) text = text.slice(1);
    for (; at <= text.length; at++) {
      var c = text[at];
      if (isQuoted) { if (c === '"' && text[at + 1] === '"') { field += c; at++; } else if (c === '"') isQuoted = false; else field += c; }
      else if (c === '"' && !field) isQuoted = true;
      else if (c === delimiter) { row.push(field); field = ""; }
      else if (c === "\n" || c === undefined) { row.push(field.replace(/\r$/, "")); if (row.length > 1 || row[0]) rows.push(row); row = []; field = ""; }
      else field += c;
    }
    if (config && config.dynamicTyping) rows = rows.map(function (r) { return r.map(function (f) { return /^\s*-?(\d+\.?|\.\d+|\d+\.\d+)([eE][-+]?\d+)?\s*$/.test(f) ? parseFloat(f) : f === "true" || f === "TRUE" ? true : f === "" ? null : f; }); });
    if (config && config.header) { var names = rows.shift(); rows = rows.map(function (r) { return r.reduce(function (o, f, i) { o[names[i]] = f; return o; }, {}); }); }
    return { data: rows, errors: [], meta: { delimiter: delimiter, linebreak: "\n", fields: names } };
  }
  // As core-js has it.
  var wellKnown = typeof Symbol === "function" && typeof Symbol.iterator === "symbol";
  var states = new WeakMap();
  function Query(text) { states.set(this, []); String(text).replace(/^\?/, "").split("&").forEach(function (p) { var i = p.indexOf("="); p && this.append(decode(i < 0 ? p : p.slice(0, i)), i < 0 ? "" : decode(p.slice(i + 1))); }, this); }
  function decode(t) { return decodeURIComponent(t.replace(/\+/g, " ")); }
  function encode(t) { return encodeURIComponent(t).replace(/[!'()~]|%20/g, function (m) { return { "!": "%21", "'": "%27", "(": "%28", ")": "%29", "~": "%7E", "%20": "+" }[m]; }); }
  Object.defineProperties(Query.prototype, {
    append: { value: function append(k, v) { states.get(this).push([k + "", v + ""]); }, enumerable: true },
    get: { value: function get(k) { var f = states.get(this).find(function (p) { return p[0] === k; }); return f ? f[1] : null; } },
    sort: { value: function sort() { states.get(this).sort(function (a, b) { return a[0] > b[0] ? 1 : a[0] < b[0] ? -1 : 0; }); } },
    toString: { value: function toString() { return states.get(this).map(function (p) { return encode(p[0]) + "=" + encode(p[1]); }).join("&"); } },
  });
  Query.prototype[Symbol.iterator] = function () { return states.get(this)[Symbol.iterator](); };
  Object.defineProperty(Query.prototype, Symbol.toStringTag, { value: "URLSearchParams", configurable: true });
  function Address(text, base) {
    var m = /^([a-z][a-z0-9+.-]*:)\/\/(?:([^:@\/]*)(?::([^@\/]*))?@)?(\[[0-9a-f:]+\]|[^:\/?#]*)(?::(\d+))?([^?#]*)(\?[^#]*)?(#.*)?$/i.exec(text);
    if (!m) { if (base) return new Address(new Address(base).origin + (text[0] === "/" ? text : "/" + text)); throw new TypeError("Invalid URL"); }
    var known = { "http:": "80", "https:": "443" }[m[1]];
    this.port = m[5] === known ? "" : m[5] || ""; this.hostname = m[4].toLowerCase(); this.protocol = m[1];
    this.pathname = encodeURI(decodeURI(m[6] || "/")); this.searchParams = new Query(m[7] || ""); this.hash = m[8] || "";
    Object.defineProperty(this, "origin", { get: function () { return this.protocol + "//" + this.hostname + (this.port && ":" + this.port); } });
  }
  Address.prototype.toString = function () { var q = this.searchParams.toString(); return this.origin + this.pathname + (q && "?" + q) + this.hash; };
  return { parse: parse, Address: Address, Query: Query, facts: { hasWorker: hasWorker, hasSymbols: wellKnown, isGlobal: typeof everywhere === "object" && everywhere.Array === Array } };
});
