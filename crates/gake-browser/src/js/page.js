// Pages.

const EVENTS = ['console', 'metric', 'request', 'response', 'requestfailed', 'requestfinished'];
/** Handlers and routes of a page, at most. */
const HANDLERS_MAX = 1000;

/** A value as text: of objects, what Chromium tells of their properties. */
const shownValue = ({ type, subtype, preview, description, ...remote }) => {
    if (type === 'string') return remote.value;
    if (!preview || !['array', undefined].includes(subtype)) return description ?? String(valueOf({ type, ...remote }));
    const values = preview.properties.map(({ name, value }) => [name, value]);
    return JSON.stringify(subtype === 'array' ? values.map(([, value]) => value) : Object.fromEntries(values));
};

class ConsoleMessage {
    constructor(page, type, args) {
        hide(this, { page_: page, type_: type, args_: args });
    }
    args() { return this.args_; }
    page() { return this.page_; }
    type() { return this.type_; }
    text() {
        return this.args_.map(({ remote }) => shownValue(remote)).join(' ');
    }
}

class Page {
    constructor(context, targetId, session) {
        hide(this, {
            context_: context, connection: context.connection, targetId, session, all: new Map(), isGone: false, isCrashed: false,
            handlers: new Map(), routes: [], tagging: null, headers: {}, defaultTimeout: null, defaultNavigationTimeout: null,
            size: context.options.viewport, media: { media: '', features: [] }, 
        });
        // The main frame has the number of its target.
        hide(this, { network: new Network(this), main: new Frame(this, targetId, null) });
        this.all.set(targetId, this.main);
        this.keyboard = new Keyboard(this);
        this.mouse = new Mouse(this);
        this.touchscreen = new Touchscreen(this);
        this.connection.sessions.set(session, (method, params) => this.onEvent(method, params));
    }

    send(method, params) {
        if (this.isGone) return Promise.reject(goError('page is closed'));
        return this.connection.send(this.session, method, params);
    }

    timeout() { return this.defaultTimeout ?? this.context_.defaultTimeout ?? 30000; }
    navigationTimeout() { return this.defaultNavigationTimeout ?? this.context_.defaultNavigationTimeout ?? this.timeout(); }
    setDefaultTimeout(ms) { this.defaultTimeout = Number(ms); }
    setDefaultNavigationTimeout(ms) { this.defaultNavigationTimeout = Number(ms); }

    async start() {
        const { options } = this.context_;
        const commands = [
            ['Page.enable'], ['Page.setLifecycleEventsEnabled', { enabled: true }], ['Network.enable', { maxPostDataSize: 65536 }],
            ['Runtime.addBinding', { name: '__gakeVital' }],
            ['Page.addScriptToEvaluateOnNewDocument', { source: native.vitals, runImmediately: true }],
            ...this.context_.initScripts.map((source) => ['Page.addScriptToEvaluateOnNewDocument', { source, runImmediately: true }]),
            ...this.context_.emulation(), ...this.viewport(this.size),
            ['Runtime.enable'],
        ];
        const tree = this.send('Page.getFrameTree').then(({ frameTree }) => this.addTree(frameTree, null));
        await Promise.all([tree, ...commands.map(([method, params]) => this.send(method, params))]);
        if (options.extraHTTPHeaders) await this.setExtraHTTPHeaders(options.extraHTTPHeaders);
        if (options.httpCredentials || native.hasBlocks()) await this.intercept();
        return this;
    }

    addTree({ frame, childFrames = [] }, parent) {
        const known = this.all.get(frame.id) ?? new Frame(this, frame.id, parent);
        this.all.set(frame.id, known);
        if (!parent) this.main = known;
        if (!known.loaderId) known.begin(frame.loaderId);
        if (!known.address) known.address = frame.url;
        known.name_ ||= frame.name ?? '';
        for (const child of childFrames) this.addTree(child, known);
    }

    frameOf(id) { return this.all.get(id); }
    frames() { return [...this.all.values()]; }
    mainFrame() { return this.main; }
    context() { return this.context_; }
    isClosed() { return this.isGone; }
    url() { return this.main.url(); }
    viewportSize() { return this.size ? { width: this.size.width, height: this.size.height } : null; }
    workers() { return []; }

    onEvent(method, event) {
        const frame = this.all.get(event.frameId ?? event.frame?.id);
        switch (method) {
            case 'Page.frameAttached':
                if (!frame) this.all.set(event.frameId, new Frame(this, event.frameId, this.all.get(event.parentFrameId) ?? null));
                return;
            case 'Page.frameDetached':
                if (event.reason === 'swap' || !frame) return;
                frame.isDetached_ = true;
                this.all.delete(event.frameId);
                return;
            case 'Page.frameNavigated': {
                const known = frame ?? new Frame(this, event.frame.id, this.all.get(event.frame.parentId) ?? null);
                this.all.set(event.frame.id, known);
                if (!event.frame.parentId) this.main = known;
                known.commit(event.frame);
                return;
            }
            case 'Page.navigatedWithinDocument':
                if (!frame) return;
                frame.address = event.url;
                frame.navigated += 1;
                frame.asked = 0;
                return;
            case 'Page.lifecycleEvent':
                if (!frame) return;
                if (event.name === 'init' || event.loaderId !== frame.loaderId) frame.begin(event.loaderId);
                frame.states.add(event.name);
                return;
            case 'Page.frameRequestedNavigation':
                if (frame && event.disposition === 'currentTab') frame.asked += 1;
                return;
            case 'Page.frameStoppedLoading':
                if (frame) frame.asked = 0;
                return;
            case 'Page.javascriptDialogOpening':
                this.send('Page.handleJavaScriptDialog', { accept: event.type === 'beforeunload' }).catch(nothing);
                return;
            case 'Runtime.executionContextCreated': {
                const { id, auxData = {} } = event.context;
                if (auxData.isDefault) this.all.get(auxData.frameId)?.setContext(id);
                return;
            }
            case 'Runtime.executionContextDestroyed':
                for (const one of this.all.values()) if (one.contextId === event.executionContextId) one.setContext(null);
                return;
            case 'Runtime.executionContextsCleared':
                for (const one of this.all.values()) one.setContext(null);
                return;
            case 'Runtime.consoleAPICalled': return this.onConsole(event);
            case 'Runtime.bindingCalled':
                if (event.name === '__gakeVital') this.onVital(event.payload);
                return;
            case 'Inspector.targetCrashed':
                this.isCrashed = true;
                this.gone();
                return;
            case 'Fetch.requestPaused': this.onPaused(event).catch(nothing); return;
            case 'Fetch.authRequired': return this.onAuthentication(event);
            default: this.network.on(method, event);
        }
    }

    gone() {
        this.isGone = true;
        this.connection.sessions.delete(this.session);
        this.context_.pages_.delete(this);
        for (const frame of this.all.values()) frame.isDetached_ = true;
    }

    onConsole({ type, args, executionContextId }) {
        if (!this.handlers.has('console')) return;
        const frame = this.frames().find((one) => one.contextId === executionContextId) ?? this.main;
        this.emit('console', new ConsoleMessage(this, type, args.map((remote) => frame.handle(remote))));
    }

    onVital(payload) {
        try {
            const { name, value, rating, url } = JSON.parse(payload);
            native.sample(`browser_web_vital_${String(name).toLowerCase()}`, [...this.urlTags(url, 'GET'), ['rating', String(rating)]], Number(value));
        } catch {
            // The page has called the binding itself.
        }
    }

    on(event, handler) {
        if (!EVENTS.includes(event)) throw goError(`unknown page on event: ${quote(event)}`);
        if (typeof handler !== 'function') throw goError('"handler" argument cannot be nil');
        const all = this.handlers.get(event) ?? [];
        if (all.length >= HANDLERS_MAX) throw goError(`too many handlers of ${event}`);
        this.handlers.set(event, [...all, native.bind(handler)]);
    }

    emit(event, value) {
        for (const handler of this.handlers.get(event) ?? []) {
            try {
                const result = handler(value);
                if (result instanceof Promise) {
                    this.connection.wait((resolve) => { result.then(resolve, (error) => { console.error(messageOf(error)); resolve(); }); });
                }
            } catch (error) {
                console.error(messageOf(error));
            }
        }
    }

    /** The tags of a URL, as handlers of `metric` name it. */
    urlTags(url, method) {
        let name = url;
        const metric = {
            tag: ({ name: tag, matches = [] }) => {
                if (isNullish(tag) || String(tag).trim() === '') throw goError(`name ${quote(tag)} is invalid`);
                const found = matches.some((match) => {
                    const isMethod = isNullish(match.method) || String(match.method).toUpperCase() === method;
                    const pattern = match.url instanceof RegExp ? match.url : new RegExp(String(match.url ?? '').replace(/^\/|\/$/g, ''));
                    return isMethod && pattern.test(url);
                });
                if (found) name = String(tag);
            },
        };
        this.emit('metric', metric);
        return [['url', name], ['name', name]];
    }

    async setViewportSize(size) {
        this.size = { width: Number(size.width), height: Number(size.height) };
        await Promise.all(this.viewport(this.size).map(([method, params]) => this.send(method, params)));
    }

    viewport(size) {
        if (!size) return [];
        const { deviceScaleFactor = 1, isMobile = false, hasTouch = false, screen } = this.context_.options;
        const { width, height } = size;
        const type = width > height ? 'landscapePrimary' : 'portraitPrimary';
        const commands = [['Emulation.setDeviceMetricsOverride', {
            width, height, deviceScaleFactor, mobile: isMobile, screenWidth: screen?.width ?? width, screenHeight: screen?.height ?? height,
            screenOrientation: { type, angle: type === 'landscapePrimary' && isMobile ? 90 : 0 },
        }]];
        if (hasTouch) commands.push(['Emulation.setTouchEmulationEnabled', { enabled: true }]);
        return commands;
    }

    /** Acts, then waits for the navigation that this has begun, if any. */
    async afterNavigation(skips, ms, act) {
        for (const frame of this.all.values()) frame.asked = 0;
        await act();
        if (skips) return;
        // Events of what the page did come before the response.
        await this.send('Page.getNavigationHistory').catch(nothing);
        if (this.frames().some((frame) => frame.asked > 0)) {
            await this.connection.until(() => this.isGone || this.frames().every((frame) => frame.asked === 0), ms).catch(nothing);
        }
    }

    async goto(url, options) {
        try {
            return await this.main.goto(url, options);
        } catch (error) {
            throw because('navigating page', error);
        }
    }

    async evaluateHandle(pageFunction, ...args) {
        try {
            return await this.main.evaluateHandle(pageFunction, ...args);
        } catch (error) {
            throw because('evaluating handle for page', error);
        }
    }

    async reload(options) {
        return this.travel('reloading page', options, () => this.send('Page.reload'));
    }

    async travel(what, options, act) {
        const { waitUntil } = optionsOf(options);
        try {
            return await this.main.navigation(timeoutOf(options, this.navigationTimeout()), lifecycleOf(waitUntil), undefined, act);
        } catch (error) {
            throw because(what, error);
        }
    }

    async go(step, what, options) {
        const { currentIndex, entries } = await this.send('Page.getNavigationHistory');
        const entry = entries[currentIndex + step];
        if (!entry) return null;
        return this.travel(`page going ${what}`, options, () => this.send('Page.navigateToHistoryEntry', { entryId: entry.id }));
    }
    async goBack(options) { return this.go(-1, 'back', options); }
    async goForward(options) { return this.go(1, 'forward', options); }

    async bringToFront() { await this.send('Page.bringToFront'); }

    async close() {
        if (this.isGone) return;
        // The last web vitals are reported when a page is left, and the first ones when it is painted.
        const expression = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(dispatchEvent(new Event('pagehide'))))))";
        const last = this.send('Runtime.evaluate', { expression, awaitPromise: true });
        await this.connection.limit(last, 1000).catch(nothing);
        if (this.isGone) return;
        await this.connection.send(null, 'Target.closeTarget', { targetId: this.targetId }).catch(nothing);
        await this.connection.until(() => this.isGone, 5000).catch(() => this.gone());
    }

    async screenshot(options) {
        return this.capture(options, optionsOf(options).clip && { ...options.clip, scale: 1 });
    }

    async capture(options, clip) {
        const { fullPage = false, omitBackground = false, path, quality, type } = optionsOf(options);
        const format = type ?? (/\.jpe?g$/i.test(path ?? '') ? 'jpeg' : 'png');
        if (!['png', 'jpeg'].includes(format)) throw goError(`taking screenshot of page: unknown format ${quote(format)}`);
        let area = clip;
        if (fullPage && !clip) {
            const { cssContentSize } = await this.send('Page.getLayoutMetrics');
            area = { x: 0, y: 0, width: cssContentSize.width, height: cssContentSize.height, scale: 1 };
        }
        const clear = omitBackground && format === 'png';
        if (clear) await this.send('Emulation.setDefaultBackgroundColorOverride', { color: { r: 0, g: 0, b: 0, a: 0 } });
        const { data } = await this.send('Page.captureScreenshot', {
            format, clip: area, quality: format === 'jpeg' ? quality ?? 100 : undefined, captureBeyondViewport: Boolean(area),
        });
        if (clear) await this.send('Emulation.setDefaultBackgroundColorOverride', {});
        if (!isNullish(path) && path !== '') native.write(String(path), data);
        return native.decode(data);
    }

    async setExtraHTTPHeaders(headers) {
        this.headers = Object.fromEntries(Object.entries(optionsOf(headers)).map(([name, value]) => [name, String(value)]));
        await this.send('Network.setExtraHTTPHeaders', { headers: this.headers });
    }

    async emulateMedia(options) {
        const { colorScheme, media, reducedMotion } = optionsOf(options);
        const features = [];
        if (colorScheme) features.push({ name: 'prefers-color-scheme', value: colorScheme });
        if (reducedMotion) features.push({ name: 'prefers-reduced-motion', value: reducedMotion });
        await this.send('Emulation.setEmulatedMedia', { media: media ?? '', features });
    }

    async emulateVisionDeficiency(type) {
        const known = ['achromatopsia', 'blurredVision', 'deuteranopia', 'none', 'protanopia', 'tritanopia'];
        if (!known.includes(type)) throw goError(`unsupported vision deficiency: ${type}`);
        await this.send('Emulation.setEmulatedVisionDeficiency', { type });
    }

    async throttleCPU(profile) {
        await this.send('Emulation.setCPUThrottlingRate', { rate: Number(optionsOf(profile).rate ?? 1) });
    }

    async throttleNetwork(profile) {
        const { latency = 0, download = -1, upload = -1 } = optionsOf(profile);
        await this.send('Network.emulateNetworkConditions', { offline: this.context_.isOffline, latency, downloadThroughput: download, uploadThroughput: upload });
    }

    async opener() { return this.opener_ ?? null; }

    async intercept() {
        const isWanted = this.routes.length > 0 || Boolean(this.context_.options.httpCredentials) || native.hasBlocks();
        await this.send(isWanted ? 'Fetch.enable' : 'Fetch.disable', isWanted ? { handleAuthRequests: true, patterns: [{ urlPattern: '*' }] } : {});
        await this.send('Network.setCacheDisabled', { cacheDisabled: this.routes.length > 0 });
    }

    async route(pattern, handler) {
        if (typeof handler !== 'function') throw goError('"handler" argument cannot be nil');
        if (this.routes.length >= HANDLERS_MAX) throw goError('too many routes');
        this.routes.push({ pattern, matches: urlMatcher(pattern), handler });
        await this.intercept();
    }

    async unroute(pattern) {
        this.routes = this.routes.filter((route) => String(route.pattern) !== String(pattern));
        await this.intercept();
    }

    async unrouteAll() {
        this.routes = [];
        await this.intercept();
    }

    async onPaused(event) {
        const { url } = event.request;
        const [, scheme, , host, port] = native.hasBlocks() && /^(https?):\/\/([^/?#]*@)?(\[[^\]]*\]|[^/:?#]*)(?::(\d+))?/i.exec(url) || [];
        const why = host ? await native.blocked(host, Number(port || (scheme === 'https' ? 443 : 80))) : '';
        if (why) {
            console.warn(`${event.request.method} ${url} is not sent: ${why}`);
            return this.send('Fetch.failRequest', { requestId: event.requestId, errorReason: 'BlockedByClient' });
        }
        const found = [...this.routes].reverse().find((route) => route.matches(url));
        if (!found) return this.send('Fetch.continueRequest', { requestId: event.requestId });
        const known = this.network.requests.get(event.networkId);
        const request = known ?? new Request(this, { ...event, type: event.resourceType, requestId: event.networkId ?? event.requestId });
        try {
            await found.handler(new Route(this, request, event.requestId));
        } catch (error) {
            console.error(messageOf(error));
        }
        return undefined;
    }

    onAuthentication({ requestId, authChallenge }) {
        const { username, password } = optionsOf(this.context_.options.httpCredentials);
        const key = `${authChallenge.origin} ${requestId}`;
        const isFirst = this.triedCredentials !== key;
        this.triedCredentials = key;
        const authChallengeResponse = username !== undefined && isFirst
            ? { response: 'ProvideCredentials', username, password } : { response: 'CancelAuth' };
        this.send('Fetch.continueWithAuth', { requestId, authChallengeResponse }).catch(nothing);
    }

    /** Waits for an event whose value is wanted. */
    async waitForValue(event, ms, isWanted) {
        let found;
        const handler = (value) => {
            try {
                if (found === undefined && isWanted(value)) found = { value };
            } catch (error) {
                found = { error };
            }
        };
        this.on(event, handler);
        try {
            await this.connection.until(() => found ?? this.main.alive() === false, ms);
        } finally {
            this.handlers.set(event, this.handlers.get(event).filter((one) => one !== handler));
        }
        if (found.error) throw found.error;
        return found.value;
    }

    async waitForEvent(event, optionsOrPredicate) {
        const isPredicate = typeof optionsOrPredicate === 'function';
        const { predicate = () => true, timeout } = isPredicate ? { predicate: optionsOrPredicate } : optionsOf(optionsOrPredicate);
        const ms = timeoutOf({ timeout }, this.timeout());
        try {
            return await this.waitForValue(event, ms, predicate);
        } catch (error) {
            throw because(`waiting for page event ${quote(event)}: waiting for page event ${quote(event)}: waiting for page ${event} event`, error);
        }
    }

    async waitForRequest(url, options) { return this.waitForExchange('request', url, options); }
    async waitForResponse(url, options) { return this.waitForExchange('response', url, options); }

    async waitForExchange(event, pattern, options) {
        const matches = typeof pattern === 'function' ? pattern : (value) => urlMatcher(pattern)(value.url());
        try {
            return await this.waitForValue(event, timeoutOf(options, this.timeout()), matches);
        } catch (error) {
            throw because(`waiting for ${event}`, error);
        }
    }
}

// A wait that ends with its page is no failure of a script that does not await it.
for (const { prototype } of [Frame, Page]) {
    for (const name of Object.getOwnPropertyNames(prototype).filter((one) => /^waitFor[A-Z](?!alue)/.test(one))) {
        const wait = prototype[name];
        prototype[name] = function waitInPage(...args) {
            const page = this.tab ?? this;
            const waited = wait.apply(this, args);
            const result = new Promise((resolve, reject) => {
                waited.then(resolve, (error) => {
                    if (page.isGone) result.catch(nothing);
                    reject(error);
                });
            });
            return result;
        };
    }
}

// What a page does by its main frame.
for (const name of Object.getOwnPropertyNames(Frame.prototype)) {
    const own = ['constructor', 'page', 'name', 'parentFrame', 'childFrames', 'isDetached', 'frameElement', 'commit', 'begin', 'setContext', 'context', 'handle', 'callOn', 'alive', 'response', 'navigation'];
    if (own.includes(name) || Object.hasOwn(Page.prototype, name)) continue;
    Page.prototype[name] = function onMainFrame(...args) {
        return this.main[name](...args);
    };
}
