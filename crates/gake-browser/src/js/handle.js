// Values of a page.

const LOST = /Cannot find context|context was destroyed|navigated or closed|Could not find object|Cannot find object|uniqueContextId not found|Session with given id/i;
const isLost = (error) => LOST.test(messageOf(error));

/** An argument of a function as Chromium takes it. */
const argumentOf = (value) => {
    if (value instanceof JSHandle) {
        if (value.isDisposed) throw goError('JS handle is disposed');
        return value.objectId ? { objectId: value.objectId } : { value: value.value };
    }
    if (typeof value === 'bigint') return { unserializableValue: `${value}n` };
    if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) {
        return { unserializableValue: Object.is(value, -0) ? '-0' : String(value) };
    }
    return value === undefined ? {} : { value };
};

/** A value of Chromium that was sent as such. */
const valueOf = (remote) => {
    if (remote.unserializableValue !== undefined) {
        const text = remote.unserializableValue;
        if (text.endsWith('n')) return Number(text.slice(0, -1));
        return text === '-0' ? -0 : Number(text);
    }
    if (remote.type === 'undefined') return undefined;
    return remote.value ?? null;
};

const exceptionOf = (details) => {
    const { exception, text } = details;
    if (!exception) return goError(text);
    const shown = exception.description ?? JSON.stringify(valueOf(exception));
    const error = goError(text.startsWith('Uncaught') ? shown : `${text} ${shown}`);
    // The message of an error that was thrown on purpose by the page's own helpers.
    error.thrown = exception.description ? exception.description.split('\n')[0].replace(/^Error: /, '') : shown;
    return error;
};

const IS_FUNCTION = /^\s*(?:async\b\s*)?(?:function\b|\([^]*?\)\s*=>|[\w$]+\s*=>)/;

/** The source of a page function, and whether it is one. */
const sourceOf = (pageFunction) => {
    const source = String(pageFunction);
    return { source, isFunction: typeof pageFunction === 'function' || IS_FUNCTION.test(source) };
};

class JSHandle {
    constructor(frame, remote) {
        hide(this, { frame, objectId: remote.objectId, remote, isDisposed: false });
    }

    get value() {
        return valueOf(this.remote);
    }

    asElement() {
        return this instanceof ElementHandle ? this : null;
    }

    async dispose() {
        if (this.isDisposed) return;
        this.isDisposed = true;
        if (this.objectId) await this.frame.tab.send('Runtime.releaseObject', { objectId: this.objectId }).catch(nothing);
    }

    async evaluate(pageFunction, ...args) {
        return this.run(pageFunction, args, true);
    }

    async evaluateHandle(pageFunction, ...args) {
        return this.run(pageFunction, args, false);
    }

    async run(pageFunction, args, byValue) {
        const { source } = sourceOf(pageFunction);
        const result = await this.frame.evaluateIn(source, [this, ...args], byValue);
        return result ?? null;
    }

    async jsonValue() {
        if (!this.objectId) return this.value;
        // As in k6, the text of it.
        return JSON.stringify(await this.frame.evaluateIn('(value) => value', [this], true));
    }

    async getProperties() {
        const { result } = await this.frame.tab.send('Runtime.getProperties', { objectId: this.objectId, ownProperties: true });
        const properties = {};
        for (const { enumerable, name, value } of result) if (enumerable && value) properties[name] = this.frame.handle(value);
        return properties;
    }

    toString() {
        return this.remote.description ?? String(this.value);
    }
}
