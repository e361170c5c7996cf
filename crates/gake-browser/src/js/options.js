// Reads arguments.

const isNullish = (value) => value === undefined || value === null;
const optionsOf = (value) => (isNullish(value) || typeof value !== 'object' ? {} : value);
const timeoutOf = (options, fallback) => {
    const ms = Number(optionsOf(options).timeout ?? fallback);
    return ms === 0 ? Infinity : ms;
};

const LIFECYCLE = { load: 'load', domcontentloaded: 'DOMContentLoaded', networkidle: 'networkIdle' };
/** The name by which Chromium calls a state of a page. */
const lifecycleOf = (state = 'load') => {
    const name = LIFECYCLE[String(state)];
    if (!name) {
        throw goError(`invalid lifecycle event: ${quote(state)}; must be one of: ` +
            'load, domcontentloaded, networkidle');
    }
    return name;
};

/** Whether a URL matches a pattern: a string, a pattern with `*`, or a regular expression. */
const urlMatcher = (pattern) => {
    if (isNullish(pattern) || pattern === '') return () => true;
    if (pattern instanceof RegExp) return (url) => new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, '')).test(url);
    if (typeof pattern === 'function') return (url) => Boolean(pattern(url));
    const text = String(pattern);
    if (!text.includes('*') && !text.includes('{')) return (url) => url === text;
    let source = '';
    let groups = 0;
    for (let i = 0; i < text.length; i += 1) {
        const c = text[i];
        if (c === '*' && text[i + 1] === '*') {
            source += '.*';
            i += 1;
        } else if (c === '*') source += '[^/]*';
        else if (c === '{') { source += '(?:'; groups += 1; }
        else if (c === '}' && groups) { source += ')'; groups -= 1; }
        else if (c === ',' && groups) source += '|';
        else source += c.replace(/[.+?^$()[\]\\|{}]/g, '\\$&');
    }
    const expression = new RegExp(`^${source}$`);
    return (url) => expression.test(url);
};

/** A pattern of text as the page's script takes it. */
const textPattern = (value, exact = false) => (value instanceof RegExp
    ? { source: value.source, flags: value.flags.replace(/[gy]/g, '') }
    : { text: String(value), exact: Boolean(exact) });
/** The same as messages name it. */
const patternLabel = (value, exact = false) => (value instanceof RegExp
    ? String(value) : `${quote(value)}${exact ? 's' : 'i'}`);

/** Sets properties that scripts do not see when they list an object's. */
const hide = (object, values) => {
    for (const [name, value] of Object.entries(values)) {
        Object.defineProperty(object, name, { value, writable: true, configurable: true });
    }
};
