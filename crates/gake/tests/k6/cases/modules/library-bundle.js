// part of library-bundles.js: what bundlers make of a module, CommonJS in strict mode
(() => {
  "use strict";
  var modules = {
    11: function (exports, _, load) {
      var importDefault = (this && this.__importDefault) || function (made) { return made && made.__esModule ? made : { default: made }; };
      Object.defineProperty(exports, "__esModule", { value: true });
      exports.stage = stage; exports.parseSpan = parseSpan;
      var execution = importDefault(load(21));
      function parseSpan(text) {
        if (text == null || text.length < 1) throw new Error("text is empty");
        for (var sum = 0, digits = "", seen = {}, i = 0; i < text.length; i++) {
          if ((text[i] >= "0" && text[i] <= "9") || text[i] === ".") { digits += text[i]; continue; }
          var unit = text[i] === "m" && text[i + 1] === "s" ? "ms" : text[i];
          var factor = { h: 36e5, m: 6e4, s: 1e3, ms: 1 }[unit];
          if (!factor) throw new Error("".concat(unit, " is an unsupported time unit"));
          if (seen[unit]) throw new Error("".concat(unit, " time unit is provided multiple times"));
          seen[unit] = true; sum += parseFloat(digits, 10) * factor; digits = ""; i += unit.length - 1;
        }
        return sum + (parseFloat(digits) || 0);
      }
      function stage() {
        var mine = execution.default.test.options.scenarios[execution.default.scenario.name];
        for (var end = 0, passed = new Date() - execution.default.scenario.startTime, i = 0; i < mine.stages.length; i++) {
          if (passed < (end += parseSpan(mine.stages[i].duration))) return i;
        }
        return mine.stages.length - 1;
      }
    },
    12: (exports, _, load) => {
      Object.defineProperty(exports, "__esModule", { value: true });
      var random = load(22);
      exports.uuid = function (isSecure) {
        void 0 === isSecure && (isSecure = false);
        if (!isSecure) return "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".replace(/[xy]/g, function (c) { var n = (16 * Math.random()) | 0; return (c === "x" ? n : (3 & n) | 8).toString(16); });
        for (var hex = [], i = 0; i < 256; ++i) hex.push((i + 256).toString(16).slice(1));
        var bytes = new Uint8Array((0, random.randomBytes)(16));
        bytes[6] = (15 & bytes[6]) | 64; bytes[8] = (63 & bytes[8]) | 128;
        return [[0, 4], [4, 6], [6, 8], [8, 10], [10, 16]].map(function (r) { return Array.from(bytes.slice(r[0], r[1]), function (b) { return hex[b]; }).join(""); }).join("-");
      };
      exports.between = function (text, left, right) {
        for (var found = [], at; -1 !== (at = text.indexOf(left)); ) { var end = text.indexOf(right, (at += left.length)); if (end < 0) break; found.push(text.substring(at, end)); text = text.substring(end + right.length); }
        return found.length ? found : null;
      };
      var passed = new (load(23).Rate)("checks");
      exports.check = function check(value, sets, tags) {
        if (value instanceof Promise) return value.then(function (v) { return check(v, sets, tags); });
        var all = Object.entries(sets).map(function (entry) {
          var add = function (ok) { passed.add(ok ? 1 : 0, Object.assign({}, tags, { check: entry[0] })); return ok; };
          var result = typeof entry[1] === "function" ? entry[1](value) : entry[1];
          return result instanceof Promise ? result.then(add) : add(result);
        });
        return all.some(function (one) { return one instanceof Promise; }) ? Promise.all(all).then(function (r) { return r.every(Boolean); }) : all.every(Boolean);
      };
    },
    21: (module) => { module.exports = require("k6/execution"); },
    22: (module) => { module.exports = require("k6/crypto"); },
    23: (module) => { module.exports = require("k6/metrics"); },
  };
  var loaded = {};
  function load(id) {
    var known = loaded[id];
    if (known !== undefined) return known.exports;
    var module = (loaded[id] = { exports: {} });
    var isHost = id > 20;
    modules[id].call(module.exports, isHost ? module : module.exports, module, load);
    return module.exports;
  }
  var parts = { 11: load(11), 12: load(12) };
  var made = {};
  Object.defineProperty(made, "__esModule", { value: true });
  made.check = made.uuid = void 0;
  [["uuid", 12], ["between", 12], ["check", 12], ["parseSpan", 11], ["stage", 11]].forEach(function (pair) {
    Object.defineProperty(made, pair[0], { enumerable: true, get: function () { return parts[pair[1]][pair[0]]; } });
  });
  var target = exports;
  for (var name in made) target[name] = made[name];
  made.__esModule && Object.defineProperty(target, "__esModule", { value: true });
})();
