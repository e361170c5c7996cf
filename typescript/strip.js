// TypeScript as JavaScript with the same lines. Sucrase strips the types; namespaces, which it
// takes for types, become functions first.
import { transform } from "sucrase";
import { parse } from "sucrase/dist/esm/parser/index.js";
import { isTopLevelDeclaration } from "sucrase/dist/esm/parser/tokenizer/index.js";
import { ContextualKeyword } from "sucrase/dist/esm/parser/tokenizer/keywords.js";
import { TokenType as tt } from "sucrase/dist/esm/parser/tokenizer/types.js";

/** The JavaScript of a TypeScript text. Throws an error with `loc`, its line and column from 1. */
export function strip(text) {
  const plain = /\b(namespace|module)\b/.test(text) ? withoutNamespaces(text) : text;
  const options = { transforms: ["typescript"], disableESTransforms: true };
  return transform(plain, options).code;
}

/** Replaces the namespaces that have values; the others are types. */
function withoutNamespaces(text) {
  const { tokens } = parse(text, false, true, false);
  /** What namespaces of a name export so far. */
  const known = new Map();
  let [plain, from] = ["", 0];
  for (let at = 0; at < tokens.length; at++) {
    const found = namespaceAt(text, tokens, at);
    if (!found) continue;
    at = found.end;
    const body = found.isDeclared ? "" : strip(text.slice(found.open.end, found.close.start));
    const inner = parse(body, false, false, false).tokens;
    // The last token is the end of the text.
    if (inner.every((token) => token.type === tt.semi || token.type === tt.eof)) continue;
    const path = found.names.join(".");
    const earlier = known.get(path) ?? [];
    const { code, exported } = opened(body, inner, found.names.at(-1), earlier);
    known.set(path, [...new Set([...earlier, ...exported])]);
    const isMerged = declares(text, tokens, found);
    const start = isMerged && found.export ? found.export.start : found.start;
    const lines = text.slice(found.start, found.open.end).replace(/[^\n]/g, "");
    plain += text.slice(from, start) + head(found.names, isMerged) + lines + code + tail(found.names);
    from = found.close.end;
  }
  return plain + text.slice(from);
}

/** The namespace whose keyword is this token. */
function namespaceAt(text, tokens, at) {
  const keyword = tokens[at];
  const isKeyword =
    keyword.isType &&
    keyword.type === tt.name &&
    (keyword.contextualKeyword === ContextualKeyword._namespace ||
      keyword.contextualKeyword === ContextualKeyword._module);
  if (!isKeyword || tokens[at + 1]?.type !== tt.name) return null;
  const names = [];
  let next = at + 1;
  for (; tokens[next].type === tt.name; next += 2) {
    names.push(text.slice(tokens[next].start, tokens[next].end));
    if (tokens[next + 1].type !== tt.dot) break;
  }
  const open = next + 1;
  if (tokens[open]?.type !== tt.braceL) return null;
  const before = tokens[at - 1];
  return {
    names,
    start: keyword.start,
    open: tokens[open],
    close: tokens[closing(tokens, open)],
    end: closing(tokens, open),
    at,
    export: before?.type === tt._export ? before : null,
    isDeclared: before?.contextualKeyword === ContextualKeyword._declare,
  };
}

/** The place of the brace that closes the one at `open`. */
function closing(tokens, open) {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    const { type } = tokens[at];
    if (type === tt.braceL || type === tt.dollarBraceL) depth++;
    if (type === tt.braceR && --depth === 0) return at;
  }
  return tokens.length - 1;
}

/** Whether a class, a function, an enum or a namespace of this name comes before. */
function declares(text, tokens, { names, at }) {
  const kinds = [tt._class, tt._function, tt._enum];
  return tokens.slice(0, at).some((token, place) => {
    const next = tokens[place + 1];
    const isKind = kinds.includes(token.type) || namespaceAt(text, tokens, place);
    return isKind && text.slice(next.start, next.end) === names[0];
  });
}

function head(names, isMerged) {
  const [first, ...rest] = names;
  const outer = `${isMerged ? "" : `var ${first}; `}(function (${first}) {`;
  return rest.reduce((code, name) => `${code} let ${name}; (function (${name}) {`, outer);
}

function tail(names) {
  const ends = names.map((name, place) => {
    const path = place === 0 ? name : `${names[place - 1]}.${name}`;
    return `})(${place === 0 ? "" : `${name} = `}${path} || (${path} = {}));`;
  });
  return ends.reverse().join(" ");
}

/**
 * The body of a namespace as that of a function of its object: what it exports can be read and set
 * there, and what earlier ones of its name export can be read here.
 */
function opened(body, tokens, namespace, earlier) {
  const exported = [];
  const own = tokens.filter(isTopLevelDeclaration).map(({ start, end }) => body.slice(start, end));
  let [code, from, depth, isExport] = ["", 0, 0, false];
  tokens.forEach((token, place) => {
    const { type, start, end } = token;
    if ([tt.braceL, tt.dollarBraceL, tt.parenL, tt.bracketL].includes(type)) depth++;
    if ([tt.braceR, tt.parenR, tt.bracketR].includes(type)) depth--;
    if (depth === 0 && (type === tt._export || type === tt.semi || startsStatement(body, token))) {
      isExport = type === tt._export || (isExport && tokens[place - 1]?.type === tt._export);
    }
    if (type === tt._export && depth === 0) {
      code += body.slice(from, start);
      from = end;
    }
    if (isExport && isTopLevelDeclaration(token)) exported.push(body.slice(start, end));
  });
  code += body.slice(from);
  const known = earlier.filter((name) => !own.includes(name));
  const taken = known.length > 0 ? ` const { ${known.join(", ")} } = ${namespace};` : "";
  const given = exported.map(
    (name) =>
      ` Object.defineProperty(${namespace}, "${name}", { enumerable: true, configurable: true, ` +
      `get: () => ${name}, set: (value) => { ${name} = value; } });`,
  );
  return { code: taken + given.join("") + code, exported };
}

/** Whether a keyword begins a statement: one within an expression is seldom first on its line. */
function startsStatement(text, { type, start }) {
  const keywords = [
    tt._const, tt._let, tt._var, tt._function, tt._class, tt._if, tt._for, tt._while, tt._do,
    tt._return, tt._throw, tt._try, tt._switch,
  ];
  return keywords.includes(type) && /^\s*$/.test(text.slice(text.lastIndexOf("\n", start - 1) + 1, start));
}
