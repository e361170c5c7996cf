// Selectors, and locators: descriptions of elements that are looked up at each action.

/** The parts of a selector around `>>` outside of quotes. */
const splitSelector = (text) => {
    const parts = [];
    let [part, quoted] = ['', ''];
    for (let i = 0; i < text.length; i += 1) {
        const c = text[i];
        if (c === '\\') {
            part += c + (text[i + 1] ?? '');
            i += 1;
            continue;
        }
        if (quoted) quoted = c === quoted ? '' : quoted;
        else if (c === '"' || c === "'" || c === '`') quoted = c;
        else if (c === '>' && text[i + 1] === '>') {
            parts.push(part);
            part = '';
            i += 1;
            continue;
        }
        part += c;
    }
    return [...parts, part].map((one) => one.trim());
};

const unquoted = (text) => {
    const quoted = /^(["'`])([^]*)\1([is]?)$/.exec(text);
    if (quoted) return { text: quoted[2].replace(/\\(.)/g, '$1'), exact: quoted[3] !== 'i' };
    const expression = /^\/([^]*)\/([a-z]*)$/.exec(text);
    if (expression) return { source: expression[1], flags: expression[2].replace(/[gy]/g, '') };
    return { text, exact: false };
};

const ENGINES = {
    css: (text) => ({ engine: 'css', text }),
    xpath: (text) => ({ engine: 'xpath', text }),
    text: (text) => ({ engine: 'text', pattern: unquoted(text) }),
    id: (text) => ({ engine: 'css', text: `[id=${quote(text)}]` }),
    nth: (text) => ({ engine: 'nth', index: Number(text) }),
    visible: (text) => ({ engine: 'visible', wanted: text !== 'false' }),
    'data-testid': (text) => ({ engine: 'testid', name: 'data-testid', pattern: { text } }),
    'data-test-id': (text) => ({ engine: 'testid', name: 'data-test-id', pattern: { text } }),
    'data-test': (text) => ({ engine: 'testid', name: 'data-test', pattern: { text } }),
    'internal:has-text': (text) => ({ engine: 'hasText', pattern: unquoted(text) }),
    'internal:text': (text) => ({ engine: 'text', pattern: unquoted(text) }),
    'internal:label': (text) => ({ engine: 'label', pattern: unquoted(text) }),
    role: (text) => roleSelector(text),
    'internal:role': (text) => roleSelector(text),
    'internal:attr': (text) => attributeSelector(text, 'attribute'),
    'internal:testid': (text) => attributeSelector(text, 'testid'),
};

/** `button[name="Save"i][checked=true]`. */
const roleSelector = (text) => {
    const step = { engine: 'role', role: /^[\w-]*/.exec(text)[0], states: {} };
    const expression = /\[\s*([\w-]+)\s*(?:=\s*("(?:\\.|[^"])*"[is]?|'(?:\\.|[^'])*'[is]?|\/.*?\/[a-z]*|[^\]]*))?\]/g;
    for (const [, name, value] of text.matchAll(expression)) {
        if (name === 'name') step.name = unquoted(value);
        else {
            const key = name === 'include-hidden' ? 'includeHidden' : name;
            step.states[key] = value === undefined || value === 'true' ? true : value === 'false' ? false : Number(value);
        }
    }
    return step;
};

const attributeSelector = (text, engine) => {
    const [, name, value] = /^\[\s*([\w-]+)\s*=\s*([^]*)\]$/.exec(text) ?? [];
    if (!name) throw goError(`parsing selector ${quote(text)}: it is not an attribute`);
    return { engine, name, pattern: unquoted(value) };
};

/** A selector as steps. */
const parseSelector = (selector) => {
    if (isNullish(selector) || selector === '') throw goError('parsing selector "": it is empty');
    return splitSelector(String(selector)).map((part) => {
        const named = /^([a-zA-Z_0-9:+-]+)=([^]*)$/.exec(part);
        if (named && ENGINES[named[1]]) return ENGINES[named[1]](named[2].trim());
        if (/^\(*\/\//.test(part) || part.startsWith('..')) return ENGINES.xpath(part);
        if (/^(["'])[^]*\1$/.test(part)) return ENGINES.text(part);
        if (named && /^internal:/.test(named[1])) throw goError(`parsing selector ${quote(part)}: unknown engine ${named[1]}`);
        return ENGINES.css(part);
    });
};

const roleLabel = (role, options) => {
    const { name, exact, ...states } = options;
    const shown = Object.entries(states).filter(([, value]) => !isNullish(value))
        .map(([key, value]) => `[${key === 'includeHidden' ? 'include-hidden' : key}=${value}]`).sort().join('');
    return `internal:role=${role}${shown}${isNullish(name) ? '' : `[name=${name instanceof RegExp ? name : `'${name}'${exact ? 's' : 'i'}`}]`}`;
};

/** The steps of `getBy...`, with the selector that messages show. */
const GETTERS = {
    getByRole: (role, options) => {
        const { name, exact, ...states } = optionsOf(options);
        const step = { engine: 'role', role: String(role).toLowerCase(), states };
        if (!isNullish(name)) step.name = textPattern(name, exact);
        return [step, roleLabel(role, optionsOf(options))];
    },
    getByText: (text, options) => [{ engine: 'text', pattern: textPattern(text, optionsOf(options).exact) }, `internal:text=${patternLabel(text, optionsOf(options).exact)}`],
    getByLabel: (text, options) => [{ engine: 'label', pattern: textPattern(text, optionsOf(options).exact) }, `internal:label=${patternLabel(text, optionsOf(options).exact)}`],
    getByTestId: (text) => [{ engine: 'testid', name: 'data-testid', pattern: textPattern(text, true) }, `internal:testid=[data-testid=${patternLabel(text, true)}]`],
};
for (const [method, name] of [['getByPlaceholder', 'placeholder'], ['getByAltText', 'alt'], ['getByTitle', 'title']]) {
    GETTERS[method] = (text, options) => {
        const { exact } = optionsOf(options);
        return [{ engine: 'attribute', name, pattern: textPattern(text, exact) }, `internal:attr=[${name}=${patternLabel(text, exact)}]`];
    };
}

class Locator {
    /** `hops` are the steps to each frame on the way; `steps` those in the last one. */
    constructor(frame, hops, steps, label, isStrict = true) {
        hide(this, { root: frame, hops, steps, label, isStrict });
    }

    get page() {
        return this.root.tab;
    }

    with(steps, label) {
        return new Locator(this.root, this.hops, [...this.steps, ...steps], `${this.label} >> ${label}`);
    }

    locator(selector, options) {
        if (selector instanceof Locator) return this.with(selector.steps, selector.label);
        return this.with(parseSelector(selector), selector).filter(options);
    }

    first() { return this.nth(0); }
    last() { return this.nth(-1); }
    nth(index) {
        return this.with([{ engine: 'nth', index: Number(index) }], `nth=${index}`);
    }

    filter(options) {
        const { hasText, hasNotText, has, hasNot } = optionsOf(options);
        let result = this;
        if (!isNullish(hasText)) result = result.with([{ engine: 'hasText', pattern: textPattern(hasText) }], `internal:has-text=${patternLabel(hasText)}`);
        if (!isNullish(hasNotText)) result = result.with([{ engine: 'hasNotText', pattern: textPattern(hasNotText) }], `internal:has-not-text=${patternLabel(hasNotText)}`);
        if (has instanceof Locator) result = result.with([{ engine: 'has', steps: has.steps }], `internal:has=${quote(has.label)}`);
        if (hasNot instanceof Locator) result = result.with([{ engine: 'hasNot', steps: hasNot.steps }], `internal:has-not=${quote(hasNot.label)}`);
        return result;
    }

    frameLocator(selector) {
        return new FrameLocator(this.root, [...this.hops, [...this.steps, ...parseSelector(selector)]], `${this.label} >> ${selector}`);
    }

    contentFrame() {
        return new FrameLocator(this.root, [...this.hops, this.steps], this.label);
    }

    /** The frame of the elements. */
    async frame(end) {
        let { root } = this;
        for (const steps of this.hops) {
            const element = await root.resolve(steps, 'attached', true, end);
            root = await element.contentFrame();
            if (!root) throw new TimeoutError(0);
        }
        return root;
    }

    /** Finds the element and acts on it, again if the page replaces it meanwhile. */
    async retry(ms, state, act) {
        const end = native.now() + ms;
        for (;;) {
            try {
                const frame = await this.frame(end);
                const element = await frame.resolve(this.steps, state, this.isStrict, end);
                const result = await act(element, Math.max(0, end - native.now()));
                if (element instanceof JSHandle && result !== element) element.dispose();
                return result;
            } catch (error) {
                const again = isLost(error) || /not attached/.test(messageOf(error));
                if (error instanceof TimeoutError || (again && native.now() >= end)) throw new TimeoutError(ms);
                if (!again) throw error;
                await this.page.connection.sleep(20);
            }
        }
    }

    async waitFor(options) {
        const { state = 'visible' } = optionsOf(options);
        try {
            await this.retry(timeoutOf(options, this.page.timeout()), stateOf(state), async () => undefined);
        } catch (error) {
            // k6 has its own word for it here.
            const isStrict = /strict mode violation/.test(messageOf(error));
            throw because(`waiting for ${quote(this.label)}`, isStrict ? 'error:strictmodeviolation' : error);
        }
    }

    /** What a helper says of all elements now, or of none. */
    async look(body, ...args) {
        const frame = await this.frame(native.now() + this.page.timeout());
        return frame.again(() => frame.callInjected(`(i, steps, ...args) => (${body})(i, i.find(document, steps), ...args)`, [this.steps, ...args], true));
    }

    async count() {
        return this.look('(i, found) => found.length').catch((error) => { throw because('counting elements', error); });
    }

    async all() {
        const count = await this.count();
        return Array.from({ length: count }, (_, index) => this.nth(index));
    }

    async allTextContents() { return this.look('(i, found) => found.map((one) => one.textContent)'); }
    async allInnerTexts() { return this.look('(i, found) => found.map((one) => one.innerText)'); }

    async isInViewport(options) {
        const { ratio = 0 } = optionsOf(options);
        return this.look(`(i, found, ratio) => {
            if (!found.length) return false;
            const { top, left, bottom, right, width, height } = found[0].getBoundingClientRect();
            const seen = Math.max(0, Math.min(right, innerWidth) - Math.max(left, 0)) * Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0));
            return seen > 0 && seen / (width * height) >= ratio;
        }`, Number(ratio));
    }

    async isVisible() { return this.lookStrictly('visible', 'visible'); }
    async isHidden() { return this.lookStrictly('hidden', 'hidden'); }

    async lookStrictly(state, word) {
        try {
            return await this.look(`(i, found, state, isStrict) => {
                if (isStrict && found.length > 1) throw new Error('strict mode violation, multiple elements returned for selector query');
                return found.length ? i.states[state](found[0]) : state === 'hidden';
            }`, state, this.isStrict);
        } catch (error) {
            throw because(`checking is ${quote(this.label)} ${word}`, error.thrown ? goError(error.thrown) : error);
        }
    }

    async boundingBox(options) {
        return this.retry(timeoutOf(options, this.page.timeout()), 'attached', (element) => element.boundingBox());
    }

    async evaluate(pageFunction, ...args) {
        return this.retry(this.page.timeout(), 'attached', (element) => element.evaluate(pageFunction, ...args));
    }

    async evaluateHandle(pageFunction, ...args) {
        return this.retry(this.page.timeout(), 'attached', (element) => element.evaluateHandle(pageFunction, ...args));
    }

    async elementHandle(options) {
        return this.retry(timeoutOf(options, this.page.timeout()), 'attached', async (element) => element);
    }

    async screenshot(options) {
        return this.retry(this.page.timeout(), 'visible', (element) => element.screenshot(options));
    }

    async scrollIntoViewIfNeeded(options) {
        return this.retry(timeoutOf(options, this.page.timeout()), 'attached', (element) => element.scrollIntoViewIfNeeded(options));
    }
}

class FrameLocator {
    constructor(frame, hops, label) {
        hide(this, { root: frame, hops, label });
    }

    locator(selector, options) {
        const label = `${this.label} >> internal:control=enter-frame >> ${selector}`;
        return new Locator(this.root, this.hops, parseSelector(selector), label).filter(options);
    }

    frameLocator(selector) {
        return new FrameLocator(this.root, [...this.hops, parseSelector(selector)], `${this.label} >> internal:control=enter-frame >> ${selector}`);
    }

    nth(index) {
        const hops = [...this.hops];
        hops.push([...hops.pop(), { engine: 'nth', index }]);
        return new FrameLocator(this.root, hops, `${this.label} >> nth=${index}`);
    }
    first() { return this.nth(0); }
    last() { return this.nth(-1); }
}

const stateOf = (state) => {
    if (['attached', 'detached', 'visible', 'hidden'].includes(state)) return state;
    throw goError(`${quote(state)} is not a valid DOM state`);
};

for (const [name, getter] of Object.entries(GETTERS)) {
    Locator.prototype[name] = function getBy(...args) {
        const [step, label] = getter(...args);
        return this.with([step], label);
    };
    FrameLocator.prototype[name] = function getBy(...args) {
        const [step, label] = getter(...args);
        return new Locator(this.root, this.hops, [step], `${this.label} >> internal:control=enter-frame >> ${label}`);
    };
}
for (const [name, [at, , run]] of Object.entries(ACTIONS)) {
    Locator.prototype[name] = async function act(...args) {
        try {
            const ms = timeoutOf(args[at], this.page.timeout());
            return await this.retry(ms, 'attached', (element, left) => run(element, left, ...args));
        } catch (error) {
            throw because(wordsOf(name, quote(this.label), args), error);
        }
    };
}
