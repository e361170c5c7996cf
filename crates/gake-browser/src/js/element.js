// Actions on elements: the same for handles, locators and selectors of a frame.

const ACTIONABLE = ['visible', 'enabled'];
const FORCED = [];
/** How long one call in the page waits, in milliseconds; longer waits are several calls. */
const BUDGET = 1000;

/** What an action needs, unless forced. */
const needs = (wanted, options) => (optionsOf(options).force ? FORCED : wanted);

class ElementHandle extends JSHandle {
    /** Calls a helper in the page with this element. */
    call(body, ...args) {
        return this.frame.callInjected(`(i, element, ...args) => (${body})(i, element, ...args)`, [this, ...args], true);
    }

    /** Acts when the element is ready. */
    async act(ms, wanted, action, ...args) {
        const end = native.now() + ms;
        for (;;) {
            const left = end - native.now();
            const budget = Math.max(0, Math.min(BUDGET, left));
            let done;
            try {
                const acted = this.call('(i, element, wanted, action, args, budget) => i.act(element, wanted, action, args, budget)', wanted, action, args, budget);
                done = await this.frame.tab.connection.limit(acted, Math.max(1, left) + 1000);
            } catch (error) {
                throw error.thrown ? goError(error.thrown) : error;
            }
            if (!done.why) return done;
            if (done.why.includes('not attached')) throw goError(done.why);
            if (native.now() >= end) throw new TimeoutError(ms);
        }
    }

    /** Scrolls to the element and finds the point of it to which the pointer goes. */
    async point(ms, options) {
        const { position, force } = optionsOf(options);
        const wanted = force ? FORCED : ['visible', 'stable', 'enabled'];
        const end = native.now() + ms;
        for (let attempt = 0; ; attempt += 1) {
            const left = Math.max(0, end - native.now());
            const block = attempt % 4 === 0 ? null : ['end', 'center', 'start'][attempt % 4 - 1];
            const { value: local } = await this.act(left, wanted, 'scroll', block);
            const { quads } = await this.frame.tab.send('DOM.getContentQuads', { objectId: this.objectId }).catch(() => ({ quads: [] }));
            const quad = quads.find((one) => area(one) > 0.99);
            if (quad) {
                const xs = [quad[0], quad[2], quad[4], quad[6]];
                const ys = [quad[1], quad[3], quad[5], quad[7]];
                const center = { x: xs.reduce((a, b) => a + b) / 4, y: ys.reduce((a, b) => a + b) / 4 };
                const offset = position
                    ? { x: position.x - local.width / 2, y: position.y - local.height / 2 } : { x: 0, y: 0 };
                // Quads of an inline element are of its first line.
                const from = position ? { x: Math.min(...xs) + local.width / 2, y: Math.min(...ys) + local.height / 2 } : center;
                const target = { x: from.x + offset.x, y: from.y + offset.y };
                const shift = await this.shift();
                const hit = { x: target.x - (shift?.x ?? 0), y: target.y - (shift?.y ?? 0) };
                const why = force || !shift ? null : await this.call('(i, element, hit) => i.hitTarget(element, hit)', hit);
                if (!why) return target;
            }
            if (native.now() >= end) throw new TimeoutError(ms);
            await this.frame.tab.connection.sleep(20);
        }
    }

    /** Where the element's document begins in the page. */
    async shift() {
        const within = await this.call('(i, element) => { let [x, y] = [0, 0]; for (let w = element.ownerDocument.defaultView; w !== w.parent; w = w.parent) { if (!w.frameElement) return null; const r = w.frameElement.getBoundingClientRect(); x += r.x + w.frameElement.clientLeft; y += r.y + w.frameElement.clientTop; } return { x, y }; }').catch(() => null);
        if (within) return within;
        // A frame of another site does not see the elements around it.
        try {
            const page = this.frame.tab;
            const { backendNodeId } = await page.send('DOM.getFrameOwner', { frameId: this.frame.id });
            const { model } = await page.send('DOM.getBoxModel', { backendNodeId });
            return { x: model.content[0], y: model.content[1] };
        } catch {
            return null;
        }
    }

    async contentFrame() {
        const { node } = await this.frame.tab.send('DOM.describeNode', { objectId: this.objectId });
        if (!node.frameId || !['IFRAME', 'FRAME'].includes(node.nodeName)) throw goError('element is not an iframe');
        return this.frame.tab.frameOf(node.frameId) ?? null;
    }

    async ownerFrame() {
        return this.frame;
    }

    async boundingBox() {
        const box = await this.frame.tab.send('DOM.getBoxModel', { objectId: this.objectId }).catch(() => null);
        if (!box) return null;
        const [x, y, right, , , bottom] = box.model.border;
        return { x, y, width: right - x, height: bottom - y };
    }

    async $(selector) {
        return this.frame.find(selector, this);
    }

    async $$(selector) {
        return this.frame.findAll(selector, this);
    }

    async waitForElementState(state, options) {
        const wanted = state === 'stable' ? ['visible', 'stable'] : [state];
        const ms = timeoutOf(options, this.frame.tab.timeout());
        try {
            await this.act(ms, wanted, 'nothing');
        } catch (error) {
            throw because(`waiting for element state ${quote(state)}`, error);
        }
    }

    async waitForSelector(selector, options) {
        return this.frame.waitFor(parseSelector(selector), selector, options, this);
    }

    async scrollIntoViewIfNeeded(options) {
        await this.act(timeoutOf(options, this.frame.tab.timeout()), ['stable'], 'scroll', null);
    }

    async selectText(options) {
        await this.act(timeoutOf(options, this.frame.tab.timeout()), needs(['visible'], options), 'selectText');
    }

    async screenshot(options) {
        await this.act(this.frame.tab.timeout(), ['visible', 'stable'], 'scroll', null);
        const box = await this.boundingBox();
        return this.frame.tab.capture(options, { ...box, scale: 1 });
    }
}

const area = (quad) => {
    let sum = 0;
    for (let i = 0; i < 8; i += 2) sum += quad[i] * quad[(i + 3) % 8] - quad[(i + 2) % 8] * quad[i + 1];
    return Math.abs(sum / 2);
};

/** The options of `selectOption`. */
const choicesOf = (values) => {
    const all = isNullish(values) ? [] : Array.isArray(values) ? values : [values];
    return all.map((value) => (typeof value === 'object' && value !== null
        ? { value: value.value, label: value.label, index: value.index } : String(value)));
};

/** Acts while these keys are held, by default those that the script holds. */
const holding = async (modifiers, page, act) => {
    const held = page.keyboard.modifiers;
    if (Array.isArray(modifiers)) page.keyboard.modifiers = modifiers.reduce((mask, name) => mask | (MODIFIERS[name] ?? 0), 0);
    try {
        await act();
    } finally {
        page.keyboard.modifiers = held;
    }
};

const click = (count) => async (element, ms, options) => {
    const page = element.frame.tab;
    const { button, delay, modifiers, trial, clickCount, noWaitAfter } = optionsOf(options);
    const { x, y } = await element.point(ms, options);
    if (trial) return;
    const press = () => page.mouse.click(x, y, { button, delay, clickCount: clickCount ?? count });
    await holding(modifiers, page, () => page.afterNavigation(noWaitAfter, ms, press));
};

const setChecked = async (element, ms, wanted, options) => {
    const isChecked = async () => (await element.act(ms, [], 'state', 'checked')).value;
    if (await isChecked() === wanted) return;
    await click(1)(element, ms, options);
    if (!optionsOf(options).trial && await isChecked() !== wanted) throw goError('clicking the checkbox did not change its state');
};

const fill = async (element, ms, value, options) => {
    const { insert } = await element.act(ms, needs(['visible', 'enabled', 'editable'], options), 'fill', String(value));
    if (insert === undefined) return;
    const page = element.frame.tab;
    if (insert) await page.keyboard.insertText(insert);
    else await page.keyboard.press('Delete');
};

const read = (action) => async (element, ms, ...args) => (await element.act(ms, [], action, ...args.slice(0, 1).filter((one) => typeof one === 'string'))).value;
const stateIs = (state, wanted = true) => async (element, ms) => (await element.act(ms, [], 'state', state)).value === wanted;
const focused = (use) => async (element, ms, text, options) => {
    await element.act(ms, ['visible'], 'focus');
    const { noWaitAfter } = optionsOf(options);
    await element.frame.tab.afterNavigation(noWaitAfter, ms, () => use(element.frame.tab.keyboard, String(text), options));
};

/** The actions: the position of their options, their words in errors, and what they do. */
const ACTIONS = {
    click: [0, () => 'clicking on', click(1)],
    dblclick: [0, () => 'double clicking on', click(2)],
    check: [0, () => 'checking', (element, ms, options) => setChecked(element, ms, true, options)],
    uncheck: [0, () => 'unchecking', (element, ms, options) => setChecked(element, ms, false, options)],
    setChecked: [1, () => 'setting checked', (element, ms, wanted, options) => setChecked(element, ms, Boolean(wanted), options)],
    hover: [0, () => 'hovering on', async (element, ms, options) => {
        const { x, y } = await element.point(ms, options);
        if (!optionsOf(options).trial) await element.frame.tab.mouse.move(x, y);
    }],
    tap: [0, () => 'tapping on', async (element, ms, options) => {
        const page = element.frame.tab;
        const { x, y } = await element.point(ms, options);
        if (!optionsOf(options).trial) await page.afterNavigation(false, ms, () => page.touchscreen.tap(x, y));
    }],
    fill: [1, (value) => ['filling', ` with ${quote(value)}`], fill],
    clear: [0, () => 'clearing', (element, ms, options) => fill(element, ms, '', options)],
    type: [1, (text) => [`typing ${quote(text)} in`, ''], focused((keyboard, text, options) => keyboard.type(text, options))],
    pressSequentially: [1, (text) => [`pressing sequentially ${quote(text)} on`, ''], focused((keyboard, text, options) => keyboard.type(text, options))],
    press: [1, (key) => [`pressing ${quote(key)} on`, ''], focused((keyboard, key, options) => keyboard.press(key, options))],
    focus: [0, () => 'focusing on', (element, ms) => element.act(ms, [], 'focus').then(nothing)],
    selectOption: [1, () => 'selecting option on', async (element, ms, values, options) => (await element.act(ms, needs(ACTIONABLE, options), 'select', choicesOf(values))).value],
    setInputFiles: [1, () => 'setting input files on', async (element, ms, files) => {
        const all = (Array.isArray(files) ? files : isNullish(files) ? [] : [files]).map((file) => {
            if (typeof file !== 'object') throw goError('a file is an object of name, mimeType and buffer');
            const { name, mimeType, buffer } = file;
            return { name, type: mimeType, data: typeof buffer === 'string' ? buffer : native.encode(buffer) };
        });
        await element.act(ms, [], 'nothing');
        await element.call(`(i, element, files) => {
            const held = new DataTransfer();
            for (const { name, type, data } of files) {
                held.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, { type }));
            }
            element.files = held.files;
            for (const type of ['input', 'change']) element.dispatchEvent(new Event(type, { bubbles: true, composed: true }));
        }`, all);
    }],
    dispatchEvent: [2, (type) => [`dispatching event ${quote(type)} to`, ''], (element, ms, type, init) => element.act(ms, [], 'dispatch', String(type), optionsOf(init)).then(nothing)],
    textContent: [0, () => 'getting text content of', read('textContent')],
    innerText: [0, () => 'getting inner text of', read('innerText')],
    innerHTML: [0, () => 'getting inner HTML of', read('innerHTML')],
    inputValue: [0, () => 'getting input value of', read('inputValue')],
    getAttribute: [1, (name) => [`getting attribute ${quote(name)} of`, ''], (element, ms, name) => read('getAttribute')(element, ms, String(name))],
    isChecked: [0, () => 'checking is checked', stateIs('checked')],
    isDisabled: [0, () => 'checking is disabled', stateIs('disabled')],
    isEditable: [0, () => 'checking is editable', stateIs('editable')],
    isEnabled: [0, () => 'checking is enabled', stateIs('enabled')],
};

/** The words of an action for an error: what it was, to which element. */
const wordsOf = (name, target, args) => {
    const words = ACTIONS[name][1](...args);
    const [before, after] = Array.isArray(words) ? words : [words, ''];
    const special = /^checking is (\w+)$/.exec(before);
    return special ? `checking is ${target} ${special[1]}` : `${before} ${target}${after}`;
};

for (const [name, [at, , run]] of Object.entries(ACTIONS)) {
    ElementHandle.prototype[name] = async function act(...args) {
        const ms = timeoutOf(args[at], this.frame.tab.timeout());
        try {
            return await run(this, ms, ...args);
        } catch (error) {
            throw because(wordsOf(name, 'element', args), error);
        }
    };
}
ElementHandle.prototype.isVisible = function isVisible() { return this.call("(i, element) => i.states.visible(element)"); };
ElementHandle.prototype.isHidden = function isHidden() { return this.call("(i, element) => i.states.hidden(element)"); };
