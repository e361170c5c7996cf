// Frames: documents, their scripts and their loads.

class Frame {
    constructor(page, id, parent, url = '') {
        hide(this, { tab: page, id, parent, address: url, name_: '', loaderId: '', states: new Set(), navigated: 0, asked: 0, contextId: null, helper: null, isDetached_: false, lastError: null });
    }

    url() { return this.address; }
    page() { return this.tab; }
    name() { return this.name_; }
    parentFrame() { return this.parent; }
    childFrames() { return this.tab.frames().filter((frame) => frame.parent === this); }
    isDetached() { return this.isDetached_; }
    async frameElement() {
        const { backendNodeId } = await this.tab.send('DOM.getFrameOwner', { frameId: this.id });
        const { object } = await this.tab.send('DOM.resolveNode', { backendNodeId, executionContextId: await this.parent.context() });
        return this.parent.handle(object);
    }

    /** A new document has come. */
    commit({ url, urlFragment = '', loaderId, name = '' }) {
        this.address = url + urlFragment;
        this.name_ = name;
        if (this.loaderId !== loaderId) this.begin(loaderId);
        this.navigated += 1;
        this.asked = 0;
    }

    begin(loaderId) {
        this.loaderId = loaderId;
        this.states = new Set();
    }

    setContext(id) {
        this.contextId = id;
        this.helper = null;
    }

    /** The number of the page's JavaScript context. */
    async context() {
        if (this.contextId === null) {
            await this.tab.connection.until(() => {
                if (this.isDetached_) throw goError('frame has been detached');
                if (this.tab.isGone) throw goError('page is closed');
                return this.contextId !== null;
            }, this.tab.timeout());
        }
        return this.contextId;
    }

    handle(remote) {
        return remote.subtype === 'node' ? new ElementHandle(this, remote) : new JSHandle(this, remote);
    }

    async callOn(target, functionDeclaration, args, byValue) {
        const { result, exceptionDetails } = await this.tab.send('Runtime.callFunctionOn', {
            functionDeclaration, arguments: args.map(argumentOf), returnByValue: byValue, awaitPromise: true, userGesture: true, ...target,
        });
        if (exceptionDetails) throw exceptionOf(exceptionDetails);
        return byValue ? valueOf(result) : this.handle(result);
    }

    /** Calls a function of the script. */
    async evaluateIn(source, args, byValue) {
        return this.callOn({ executionContextId: await this.context() }, source, args, byValue);
    }

    /** Calls a function with the helpers of the page. */
    async callInjected(source, args, byValue) {
        const executionContextId = await this.context();
        if (!this.helper) {
            const { result, exceptionDetails } = await this.tab.send('Runtime.evaluate', { expression: native.injected, contextId: executionContextId });
            if (exceptionDetails) throw exceptionOf(exceptionDetails);
            if (this.contextId === executionContextId) this.helper = result.objectId;
            return this.callOn({ objectId: result.objectId }, `function (...args) { return (${source})(this, ...args); }`, args, byValue);
        }
        return this.callOn({ objectId: this.helper }, `function (...args) { return (${source})(this, ...args); }`, args, byValue);
    }

    /** Repeats what a navigation has interrupted. */
    async again(act, ms = this.tab.timeout()) {
        const end = native.now() + ms;
        for (;;) {
            try {
                return await act();
            } catch (error) {
                if (!isLost(error) || native.now() >= end || this.tab.isGone) throw error;
                await this.tab.connection.sleep(20);
            }
        }
    }

    /** Waits for elements in a state; the first one, if there is one. */
    async resolve(steps, state, isStrict, end, root = null) {
        for (;;) {
            const left = end - native.now();
            const budget = Math.max(0, Math.min(BUDGET, left));
            try {
                const body = `async (i, root, ...args) => {
                    const found = await i.waitFor(root ?? document, ...args);
                    return found ? found.element ?? true : false;
                }`;
                const call = this.callInjected(body, [root, steps, state, isStrict, budget], false);
                const found = await this.tab.connection.limit(call, Math.max(1, left) + 1000);
                if (found instanceof ElementHandle) return found;
                if (found.value === true) return null;
            } catch (error) {
                if (error.thrown) throw goError(error.thrown);
                if (!isLost(error)) throw error;
                if (this.isDetached_) throw goError('frame has been detached');
                await this.tab.connection.sleep(20);
            }
            if (native.now() >= end) throw new TimeoutError(0);
        }
    }

    async waitFor(steps, label, options, root) {
        const { state = 'visible', strict = false } = optionsOf(options);
        const ms = timeoutOf(options, this.tab.timeout());
        try {
            return await this.resolve(steps, stateOf(state), strict, native.now() + ms, root);
        } catch (error) {
            throw because(`waiting for selector ${quote(label)}`, error instanceof TimeoutError ? new TimeoutError(ms) : error);
        }
    }

    async waitForSelector(selector, options) {
        return this.waitFor(parseSelector(selector), selector, options);
    }

    async query(steps, root = null) {
        const found = await this.again(() => this.callInjected('(i, root, steps) => i.find(root ?? document, steps)[0] ?? null', [root, steps], false));
        return found instanceof ElementHandle ? found : null;
    }

    async queryAll(steps, root = null) {
        const list = await this.again(() => this.callInjected('(i, root, steps) => i.find(root ?? document, steps)', [root, steps], false));
        const elements = Object.values(await list.getProperties()).filter((one) => one instanceof ElementHandle);
        await list.dispose();
        return elements;
    }

    async $(selector) { return this.find(selector, null); }
    async $$(selector) { return this.findAll(selector, null); }

    /** As `query` and `queryAll`, with errors that name the selector. */
    async find(selector, root) {
        const steps = parseSelector(selector);
        return this.query(steps, root).catch((error) => { throw because(`querying selector ${quote(String(selector))}`, error); });
    }

    async findAll(selector, root) {
        const [steps, shown] = [parseSelector(selector), quote(String(selector))];
        return this.queryAll(steps, root).catch((error) => {
            throw because(`querying all selector ${shown}: querying all selectors ${shown}`, error);
        });
    }

    locator(selector, options) {
        return new Locator(this, [], parseSelector(selector), String(selector)).filter(options);
    }

    frameLocator(selector) {
        return new FrameLocator(this, [parseSelector(selector)], String(selector));
    }

    async run(pageFunction, args, byValue) {
        if (isNullish(pageFunction) || pageFunction === '') throw goError(`${byValue ? 'evaluate' : 'evaluateHandle'} requires a page function`);
        const { source, isFunction } = sourceOf(pageFunction);
        if (isFunction) {
            const result = await this.evaluateIn(source, args, byValue);
            return result ?? null;
        }
        const { result, exceptionDetails } = await this.tab.send('Runtime.evaluate', {
            expression: source, contextId: await this.context(), returnByValue: byValue, awaitPromise: true, userGesture: true,
        });
        if (exceptionDetails) throw exceptionOf(exceptionDetails);
        return byValue ? valueOf(result) ?? null : this.handle(result);
    }

    async evaluate(pageFunction, ...args) {
        try {
            return await this.run(pageFunction, args, true);
        } catch (error) {
            throw because('evaluating JS', error);
        }
    }

    async evaluateHandle(pageFunction, ...args) {
        try {
            return await this.run(pageFunction, args, false);
        } catch (error) {
            throw because('evaluating handle for frame', error);
        }
    }

    async title() {
        try {
            return await this.again(() => this.evaluate('() => document.title'));
        } catch (error) {
            throw because('getting page title', error);
        }
    }
    async content() {
        return this.again(() => this.evaluate(`() => {
            const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '';
            return doctype + (document.documentElement?.outerHTML ?? '');
        }`));
    }

    async setContent(html, options) {
        const { waitUntil } = optionsOf(options);
        const state = lifecycleOf(waitUntil);
        this.states = new Set();
        try {
            await this.evaluateIn('(html) => { window.stop(); document.open(); document.write(html); document.close(); }', [String(html)], true);
            await this.tab.connection.until(() => this.states.has(state), timeoutOf(options, this.tab.navigationTimeout()));
        } catch (error) {
            throw because('setting content', error);
        }
    }

    /** The response of the document that is there. */
    response(loaderId = this.loaderId) {
        return this.tab.network.navigations.get(loaderId)?.answer ?? null;
    }

    async goto(url, options) {
        const { waitUntil, referer } = optionsOf(options);
        const state = lifecycleOf(waitUntil);
        const ms = timeoutOf(options, this.tab.navigationTimeout());
        const address = String(url);
        const end = native.now() + ms;
        try {
            const asked = this.tab.send('Page.navigate', { url: address, frameId: this.id, referrer: referer ?? this.tab.headers.Referer });
            const within = this.tab.connection.limit(asked, ms);
            const { errorText, loaderId } = await within.catch((error) => { throw because(`navigating to ${quote(address)}`, error); });
            if (errorText && errorText !== 'net::ERR_HTTP_RESPONSE_CODE_FAILURE') throw goError(errorText);
            if (!loaderId) return null;
            await this.tab.connection.until(() => this.alive() && this.loaderId === loaderId && this.states.has(state), Math.max(0, end - native.now()));
            return this.response(loaderId);
        } catch (error) {
            throw because(`navigating frame to ${quote(address)}`, error instanceof TimeoutError ? because(`navigating to ${quote(address)}`, new TimeoutError(ms)) : error);
        }
    }

    alive() {
        if (this.tab.isGone) throw goError(this.tab.isCrashed ? 'page crashed' : 'page is closed');
        if (this.isDetached_) throw goError('frame has been detached');
        return true;
    }

    /** Waits for the next navigation, begun by `act` if given. */
    async navigation(ms, state, isWanted = () => true, act = async () => undefined) {
        const before = this.navigated;
        const done = this.tab.connection.until(() => this.alive() && this.navigated > before && isWanted(this.address) && this.states.has(state), ms);
        done.catch(nothing);
        await act();
        await done;
        return this.response();
    }

    async waitForNavigation(options) {
        const { waitUntil, url } = optionsOf(options);
        const ms = timeoutOf(options, this.tab.navigationTimeout());
        try {
            return await this.navigation(ms, lifecycleOf(waitUntil), urlMatcher(url));
        } catch (error) {
            throw because(isNullish(url) ? 'waiting for navigation' : `waiting for navigation to URL matching ${quote(url)}`, error);
        }
    }

    async waitForURL(url, options) {
        const { waitUntil } = optionsOf(options);
        const [matches, state] = [urlMatcher(url), lifecycleOf(waitUntil)];
        const ms = timeoutOf(options, this.tab.navigationTimeout());
        try {
            await this.tab.connection.until(() => this.alive() && matches(this.address) && this.states.has(state), ms);
        } catch (error) {
            throw because(`waiting for navigation to URL matching ${quote(url instanceof RegExp ? url : `'${url}'`)}`, error);
        }
    }

    async waitForLoadState(state, options) {
        let wanted;
        try {
            wanted = lifecycleOf(isNullish(state) || state === '' ? 'load' : state);
        } catch (error) {
            throw because(`unmarshaling wait for load state ${quote(state)}`, error);
        }
        const ms = timeoutOf(options, this.tab.navigationTimeout());
        try {
            await this.tab.connection.until(() => this.alive() && this.states.has(wanted), ms);
        } catch (error) {
            throw because(`waiting for load state ${quote(state ?? 'load')}`, error);
        }
    }

    async waitForTimeout(ms) { await this.tab.connection.sleep(Number(ms)); }

    async waitForFunction(pageFunction, options, ...args) {
        const { polling = 'raf' } = optionsOf(options);
        const ms = timeoutOf(options, this.tab.timeout());
        const { source, isFunction } = sourceOf(pageFunction);
        const pause = typeof polling === 'number' ? polling : 16;
        const end = native.now() + ms;
        const body = `async (i, budget, pause, ...args) => {
            const end = performance.now() + budget;
            for (;;) {
                const value = await ${isFunction ? `(${source})(...args)` : `(${source})`};
                if (value || performance.now() >= end) return value;
                await new Promise((resolve) => setTimeout(resolve, pause));
            }
        }`;
        try {
            for (;;) {
                const left = Math.max(0, end - native.now());
                const call = this.again(() => this.callInjected(body, [Math.min(BUDGET, left), pause, ...args], false), ms);
                const found = await this.tab.connection.limit(call, Math.max(1, left) + 1000);
                if (found.objectId || found.value) return found;
                if (native.now() >= end) throw new TimeoutError(ms);
            }
        } catch (error) {
            throw because('waiting for function, polling', error instanceof TimeoutError ? new TimeoutError(ms) : error);
        }
    }
}

/** A selector of a frame's method: the first element, unless it is to be the only one. */
const quick = (frame, selector, options) => new Locator(frame, [], parseSelector(selector), String(selector), Boolean(optionsOf(options).strict));

for (const [name, [at]] of Object.entries(ACTIONS)) {
    if (name === 'clear' || name === 'pressSequentially') continue;
    Frame.prototype[name] = async function act(selector, ...args) {
        return quick(this, selector, args[at])[name](...args);
    };
}
for (const name of ['isVisible', 'isHidden']) {
    Frame.prototype[name] = async function look(selector, options) {
        return quick(this, selector, options)[name](options);
    };
}
for (const [name, getter] of Object.entries(GETTERS)) {
    Frame.prototype[name] = function getBy(...args) {
        const [step, label] = getter(...args);
        return new Locator(this, [], [step], label);
    };
}
