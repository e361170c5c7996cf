// The browser and its contexts.

const PERMISSIONS = { geolocation: 'geolocation', midi: 'midi', 'midi-sysex': 'midiSysex', notifications: 'notifications', camera: 'videoCapture', microphone: 'audioCapture', 'background-sync': 'backgroundSync', 'ambient-light-sensor': 'sensors', accelerometer: 'sensors', gyroscope: 'sensors', magnetometer: 'sensors', 'accessibility-events': 'accessibilityEvents', 'clipboard-read': 'clipboardReadWrite', 'clipboard-write': 'clipboardSanitizedWrite', 'payment-handler': 'paymentHandler' };

const COOKIE = { name: String, value: String, url: String, domain: String, path: String, expires: Number, httpOnly: Boolean, secure: Boolean, sameSite: String };
/** A cookie as Chromium takes it: with the types of its fields. */
const cookieOf = (cookie) => Object.fromEntries(Object.entries(COOKIE)
    .filter(([name]) => !isNullish(cookie?.[name])).map(([name, type]) => [name, type(cookie[name])]));

class BrowserContext {
    constructor(connection, id, options) {
        hide(this, {
            connection, id, options, pages_: new Set(), initScripts: [], defaultTimeout: null, defaultNavigationTimeout: null,
            isOffline: Boolean(options.offline), creating: 0, opened: [], isClosed: false,
        });
    }

    browser() { return browser; }
    pages() { return [...this.pages_]; }
    setDefaultTimeout(ms) { this.defaultTimeout = Number(ms); }
    setDefaultNavigationTimeout(ms) { this.defaultNavigationTimeout = Number(ms); }

    /** The commands that make a page what the options want. */
    emulation() {
        const { bypassCSP, colorScheme, geolocation, ignoreHTTPSErrors, javaScriptEnabled, locale = 'en-US', reducedMotion, timezoneID, userAgent } = this.options;
        const commands = [];
        if (bypassCSP) commands.push(['Page.setBypassCSP', { enabled: true }]);
        if (ignoreHTTPSErrors) commands.push(['Security.setIgnoreCertificateErrors', { ignore: true }]);
        if (javaScriptEnabled === false) commands.push(['Emulation.setScriptExecutionDisabled', { value: true }]);
        commands.push(['Emulation.setLocaleOverride', { locale }]);
        if (timezoneID) commands.push(['Emulation.setTimezoneOverride', { timezoneId: timezoneID }]);
        commands.push(['Emulation.setUserAgentOverride', { userAgent: userAgent ?? agent, acceptLanguage: locale }]);
        if (geolocation) commands.push(['Emulation.setGeolocationOverride', { accuracy: 0, ...geolocation }]);
        if (this.isOffline) commands.push(['Network.emulateNetworkConditions', { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 }]);
        const features = [];
        // A page in the background has no position and no frames otherwise.
        commands.push(['Emulation.setFocusEmulationEnabled', { enabled: true }]);
        features.push({ name: 'prefers-color-scheme', value: colorScheme ?? 'light' });
        if (reducedMotion) features.push({ name: 'prefers-reduced-motion', value: reducedMotion });
        commands.push(['Emulation.setEmulatedMedia', { features }]);
        return commands;
    }

    toAll(method, params) {
        return Promise.all(this.pages().map((page) => page.send(method, params)));
    }

    async newPage() {
        if (this.isClosed) throw goError('creating new page in browser context: browser context is closed');
        this.creating += 1;
        try {
            const created = this.connection.send(null, 'Target.createTarget', { url: 'about:blank', browserContextId: this.id });
            const { targetId } = await this.connection.limit(created, native.timeout());
            return await this.attach(targetId);
        } catch (error) {
            throw error instanceof TimeoutError ? goError('creating new page in browser context: creating a new blank page: context deadline exceeded') : error;
        } finally {
            this.creating -= 1;
        }
    }

    async attach(targetId) {
        const { sessionId } = await this.connection.send(null, 'Target.attachToTarget', { targetId, flatten: true });
        const page = new Page(this, targetId, sessionId);
        this.pages_.add(page);
        await page.start();
        this.opened.push(page);
        return page;
    }

    async onTarget({ targetId, type, openerId }) {
        if (type !== 'page' || (!openerId && this.creating > 0) || this.pages().some((page) => page.targetId === targetId)) return;
        const page = await this.attach(targetId);
        hide(page, { opener_: this.pages().find((one) => one.targetId === openerId) });
    }

    async waitForEvent(event, optionsOrPredicate) {
        if (event !== 'page') throw goError(`incorrect event ${quote(event)}, "page" is the only event supported`);
        const isPredicate = typeof optionsOrPredicate === 'function';
        const { predicate = () => true, timeout } = isPredicate ? { predicate: optionsOrPredicate } : optionsOf(optionsOrPredicate);
        const ms = timeoutOf({ timeout }, this.defaultTimeout ?? 30000);
        let next = this.opened.length;
        const find = () => {
            while (next < this.opened.length) {
                next += 1;
                if (predicate(this.opened[next - 1])) return this.opened[next - 1];
            }
            return null;
        };
        try {
            return await this.connection.until(find, ms);
        } catch (error) {
            throw error instanceof TimeoutError ? goError(`waitForEvent timed out after ${goDuration(ms)}`) : because('predicate function failed', error);
        }
    }

    async addCookies(cookies) {
        const all = (Array.isArray(cookies) ? cookies : []).map(cookieOf);
        if (!all.length) throw goError('cannot set cookies: no cookies provided');
        for (const cookie of all) {
            if (!cookie.name) throw goError('cookie name must be set');
            if (isNullish(cookie.value) || cookie.value === '') throw goError('cookie value must be set');
            if (!cookie.url && !(cookie.domain && cookie.path)) throw goError('if cookie URL is not provided, both domain and path must be specified');
            if (cookie.expires === 0 || cookie.expires === -1) delete cookie.expires;
            if (cookie.sameSite === '') delete cookie.sameSite;
        }
        try {
            await this.connection.send(null, 'Storage.setCookies', { cookies: all, browserContextId: this.id });
        } catch (error) {
            throw because('cannot set cookies', error);
        }
    }

    async cookies(...urls) {
        const { cookies } = await this.connection.send(null, 'Storage.getCookies', { browserContextId: this.id });
        const wanted = urls.flat().map((url) => {
            const parts = /^(https?):\/\/([^/:?#]+)(?::\d+)?([^?#]*)/i.exec(String(url));
            if (!parts) throw goError(`parsing urls: ${quote(url)}`);
            return { isSecure: parts[1].toLowerCase() === 'https' || ['localhost', '127.0.0.1'].includes(parts[2]), host: parts[2], path: parts[3] || '/' };
        });
        const isOf = (cookie) => ({ isSecure, host, path }) => (isSecure || !cookie.secure) && path.startsWith(cookie.path)
            && (host === cookie.domain || (cookie.domain.startsWith('.') && `.${host}`.endsWith(cookie.domain)));
        const shown = cookies.map(({ name, value, domain, path, expires, httpOnly, secure, sameSite = '' }) => ({ name, value, domain, path, expires, httpOnly, secure, sameSite, url: '' }));
        return wanted.length ? shown.filter((cookie) => wanted.some(isOf(cookie))) : shown;
    }

    async clearCookies() { await this.connection.send(null, 'Storage.clearCookies', { browserContextId: this.id }); }

    async addInitScript(script) {
        const source = typeof script === 'function' ? `(${script})();` : typeof script === 'object' && script ? String(script.content ?? '') : String(script ?? '');
        this.initScripts.push(source);
        await this.toAll('Page.addScriptToEvaluateOnNewDocument', { source });
    }

    async grantPermissions(permissions, options) {
        const names = [...permissions].map((name) => {
            if (!PERMISSIONS[name]) throw goError(`${quote(name)} is an invalid permission`);
            return PERMISSIONS[name];
        });
        await this.connection.send(null, 'Browser.grantPermissions', { permissions: names, origin: optionsOf(options).origin, browserContextId: this.id });
    }

    async clearPermissions() { await this.connection.send(null, 'Browser.resetPermissions', { browserContextId: this.id }); }

    async setGeolocation(geolocation) {
        this.options.geolocation = geolocation;
        await this.toAll('Emulation.setGeolocationOverride', { accuracy: 0, ...geolocation });
    }

    async setHTTPCredentials(credentials) {
        this.options.httpCredentials = credentials;
        await Promise.all(this.pages().map((page) => page.intercept()));
    }

    async setOffline(isOffline) {
        this.isOffline = Boolean(isOffline);
        await this.toAll('Network.emulateNetworkConditions', { offline: this.isOffline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
    }

    async close() {
        if (this.isClosed) return;
        this.isClosed = true;
        for (const page of this.pages()) await page.close();
        await this.connection.send(null, 'Target.disposeBrowserContext', { browserContextId: this.id }).catch(nothing);
        if (current?.context === this) current.context = null;
    }
}

/** The browser of the iteration. */
let current = null;
let agent = '';
let version = '';

const open = (url) => {
    if (!url && current && native.isCurrent()) return current;
    native.open(url);
    const connection = new Connection();
    current = { connection, context: null, ready: null };
    const mine = current;
    connection.onRootEvent = (method, event) => {
        if (method === 'Target.targetCreated' && mine.context) mine.context.onTarget(event.targetInfo).catch(nothing);
        if (method === 'Target.detachedFromTarget') {
            const page = mine.context?.pages().find((one) => one.session === event.sessionId);
            page?.gone();
        }
    };
    return current;
};

const connect = async ({ connection }) => {
    const ms = native.timeout();
    try {
        const found = await connection.limit(connection.send(null, 'Browser.getVersion'), ms);
        version = found.product.replace(/^.*\//, '');
        agent = found.userAgent;
    } catch (error) {
        throw error instanceof TimeoutError ? goError(`the browser was not ready within ${goDuration(ms)}, as K6_BROWSER_TIMEOUT says`) : error;
    }
};

const ready = (state) => {
    state.ready ??= connect(state);
    return state.ready;
};

const browser = {
    context() {
        return open().context;
    },
    async closeContext() {
        const { context } = open();
        if (!context) throw goError('cannot close context as none is active in browser');
        await context.close();
    },
    isConnected() {
        return !open().connection.isClosed;
    },
    async newContext(options) {
        const state = open();
        if (state.context) throw goError('existing browser context must be closed before creating a new one');
        await ready(state);
        const { proxy, viewport, ...others } = optionsOf(options);
        const made = await state.connection.send(null, 'Target.createBrowserContext', {
            disposeOnDetach: true, proxyServer: proxy?.server || undefined, proxyBypassList: proxy?.bypass || undefined,
        });
        const size = viewport === null ? null : viewport ?? { width: 1280, height: 720 };
        state.context = new BrowserContext(state.connection, made.browserContextId, { ...others, viewport: size });
        if (others.permissions?.length) await state.context.grantPermissions(others.permissions);
        state.context.initScripts.push('window.k6 = { testRunId: "" }');
        return state.context;
    },
    async newPage(options) {
        await ready(open());
        let context;
        try {
            context = await browser.newContext(options);
        } catch (error) {
            throw because('new page', error);
        }
        return context.newPage();
    },
    userAgent() {
        open();
        return agent;
    },
    version() {
        open();
        return version;
    },
};
const chromium = {
    async connectOverCDP(url) {
        const failed = (why) => because('connecting to Chromium over CDP', why);
        const text = String(url ?? '').trim();
        if (!text) throw failed('WebSocket endpoint cannot be empty');
        const [, scheme, host, port] = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/(\[[^\]]*\]|[^/:?#]*)(?::(\d+))?)?/i.exec(text);
        const invalid = (why) => failed(`invalid WebSocket endpoint ${quote(text)}: ${why}`);
        if (!/^wss?$/i.test(scheme)) throw invalid(`scheme must be ws or wss, got ${quote(scheme ?? '')}`);
        if (!host) throw invalid('host is missing');
        if (current && native.isCurrent()) throw failed('the iteration drives a browser already');
        try {
            const why = await native.blocked(host.replace(/^\[|\]$/g, ''), Number(port || 80));
            if (why) throw goError(why);
            const state = open(text);
            await ready(state);
            const close = async () => {
                await state.context?.close();
                state.connection.isClosed = true;
            };
            return { ...browser, close };
        } catch (error) {
            throw failed(error);
        }
    },
};
