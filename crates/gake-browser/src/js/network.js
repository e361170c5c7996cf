// Requests, responses and the metrics of both.

const headerObject = (headers) => {
    const all = {};
    for (const [name, value] of Object.entries(headers ?? {})) all[name.toLowerCase()] = value;
    return all;
};
const headerBytes = (headers) => Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + String(value).length + 4, 2);

class Request {
    constructor(page, event) {
        hide(this, { page, event, id: event.requestId, headersNow: headerObject(event.request.headers), answer: null, failed: null, finishedAt: null, redirected: null });
    }

    url() { return this.event.request.url; }
    method() { return this.event.request.method; }
    resourceType() { return this.event.type ?? 'Other'; }
    isNavigationRequest() { return this.event.requestId === this.event.loaderId && this.event.type === 'Document'; }
    frame() { return this.page.frameOf(this.event.frameId) ?? null; }
    headers() { return { ...this.headersNow }; }
    async allHeaders() { return this.headers(); }
    async headersArray() { return Object.entries(this.headersNow).map(([name, value]) => ({ name, value })); }
    async headerValue(name) { return this.headersNow[String(name).toLowerCase()] ?? null; }
    postData() { return this.event.request.postData ?? null; }
    postDataBuffer() { return this.event.request.postData === undefined ? null : native.decode(native.encode(this.event.request.postData)); }
    failure() { return this.failed ? { errorText: this.failed } : null; }
    async response() { return this.answer; }
    timing() { return this.answer?.timing() ?? null; }

    size() {
        const line = this.method().length + this.url().length + 12;
        return { headers: line + headerBytes(this.headersNow), body: (this.event.request.postData ?? '').length };
    }
}

class Response {
    constructor(request, event) {
        hide(this, { request_: request, event, answer: event.response, headersNow: headerObject(event.response.headers), bytes: 0, body_: null });
    }

    request() { return this.request_; }
    frame() { return this.request_.frame(); }
    url() { return this.answer.url; }
    status() { return this.answer.status; }
    statusText() { return this.answer.statusText; }
    ok() { return this.status() === 0 || (this.status() >= 200 && this.status() <= 299); }
    headers() { return { ...this.headersNow }; }
    async allHeaders() { return this.headers(); }
    async headersArray() { return Object.entries(this.headersNow).map(([name, value]) => ({ name, value })); }
    async headerValue(name) { return this.headersNow[String(name).toLowerCase()] ?? null; }
    async headerValues(name) { return (this.headersNow[String(name).toLowerCase()] ?? '').split('\n').filter(Boolean); }
    async securityDetails() { return this.answer.securityDetails ?? null; }
    async serverAddr() { return { ipAddress: this.answer.remoteIPAddress ?? '', port: this.answer.remotePort ?? 0 }; }
    timing() { return this.answer.timing ?? null; }
    async size() { return { headers: headerBytes(this.headersNow), body: this.bytes }; }

    async finished() {
        const { page } = this.request_;
        await page.connection.until(() => this.request_.finishedAt !== null || this.request_.failed, page.timeout());
        return null;
    }

    async load() {
        if (this.body_) return this.body_;
        if (this.status() >= 300 && this.status() <= 399) throw goError('response body is unavailable for redirect responses');
        try {
            await this.finished();
            this.body_ = await this.request_.page.send('Network.getResponseBody', { requestId: this.request_.id });
        } catch (error) {
            throw because('getting response body', error);
        }
        return this.body_;
    }

    async body() {
        const { body, base64Encoded } = await this.load();
        return native.decode(base64Encoded ? body : native.encode(body));
    }

    async text() {
        const { body, base64Encoded } = await this.load();
        return base64Encoded ? native.text(body) : body;
    }

    async json() {
        const text = await this.text();
        try {
            return JSON.parse(text);
        } catch (error) {
            throw because('unmarshalling response body to JSON', error);
        }
    }
}

class Route {
    constructor(page, request, id) {
        hide(this, { page, request_: request, id, isHandled: false });
    }

    request() { return this.request_; }

    async end(method, params) {
        if (this.isHandled) throw goError('route is already handled');
        this.isHandled = true;
        await this.page.send(method, { requestId: this.id, ...params }).catch((error) => {
            // The page may have gone on.
            if (!/Invalid InterceptionId/i.test(messageOf(error))) throw error;
        });
    }

    async abort(errorCode = 'failed') {
        const reasons = { aborted: 'Aborted', accessdenied: 'AccessDenied', addressunreachable: 'AddressUnreachable', blockedbyclient: 'BlockedByClient', blockedbyresponse: 'BlockedByResponse', connectionaborted: 'ConnectionAborted', connectionclosed: 'ConnectionClosed', connectionfailed: 'ConnectionFailed', connectionrefused: 'ConnectionRefused', connectionreset: 'ConnectionReset', internetdisconnected: 'InternetDisconnected', namenotresolved: 'NameNotResolved', timedout: 'TimedOut', failed: 'Failed' };
        const errorReason = reasons[errorCode];
        if (!errorReason) throw goError(`unknown error code: ${errorCode}`);
        await this.end('Fetch.failRequest', { errorReason });
    }

    async continue(options) {
        const { url, method, headers, postData } = optionsOf(options);
        await this.end('Fetch.continueRequest', {
            url, method,
            headers: headers && Object.entries(headers).map(([name, value]) => ({ name, value: String(value) })),
            postData: isNullish(postData) ? undefined : native.encode(postData),
        });
    }

    async fulfill(options) {
        const { status = 200, headers = {}, contentType, body = '' } = optionsOf(options);
        const all = Object.entries(headers).map(([name, value]) => ({ name, value: String(value) }));
        if (contentType) all.push({ name: 'content-type', value: contentType });
        await this.end('Fetch.fulfillRequest', { responseCode: Number(status), responseHeaders: all, body: native.encode(body) });
    }
}

/** The requests of a page that are not finished, with their events. */
class Network {
    constructor(page) {
        hide(this, { page, requests: new Map(), navigations: new Map() });
    }

    on(method, event) {
        switch (method) {
            case 'Network.requestWillBeSent': return this.sent(event);
            case 'Network.responseReceived': return this.received(event);
            case 'Network.loadingFinished': return this.ended(event, null);
            case 'Network.loadingFailed': return this.ended(event, event.errorText);
            case 'Network.requestWillBeSentExtraInfo': return this.extra(event, 'request');
            case 'Network.responseReceivedExtraInfo': return this.extra(event, 'answer');
            default: return undefined;
        }
    }

    sent(event) {
        if (/^(data|blob):/.test(event.request.url)) return;
        const before = this.requests.get(event.requestId);
        if (before && event.redirectResponse) {
            this.received({ ...event, response: event.redirectResponse });
            this.ended({ ...event, encodedDataLength: event.redirectResponse.encodedDataLength }, null);
        }
        const request = new Request(this.page, event);
        request.redirected = before ?? null;
        this.requests.set(event.requestId, request);
        if (request.isNavigationRequest()) {
            this.navigations.set(event.loaderId, request);
            // Only the last few can be asked for.
            if (this.navigations.size > 50) this.navigations.delete(this.navigations.keys().next().value);
        }
        this.page.emit('request', request);
    }

    extra(event, which) {
        const request = this.requests.get(event.requestId);
        const target = which === 'request' ? request : request?.answer;
        if (target) target.headersNow = { ...target.headersNow, ...headerObject(event.headers) };
    }

    received(event) {
        const request = this.requests.get(event.requestId);
        if (!request) return;
        request.answer = new Response(request, event);
        request.answeredAt = event.timestamp;
        this.page.emit('response', request.answer);
    }

    /** Records the samples of a response, under the tags of k6. */
    record(request, response, kind, bytes) {
        const { answer } = response;
        response.bytes = bytes;
        const tags = [
            ...kind, ['ip', answer.remoteIPAddress ?? ''], ['status', String(answer.status)], ['proto', answer.protocol ?? ''],
            ['from_cache', String(Boolean(answer.fromDiskCache))], ['from_prefetch_cache', String(Boolean(answer.fromPrefetchCache))],
            ['from_service_worker', String(Boolean(answer.fromServiceWorker))],
        ];
        native.sample('browser_http_req_duration', tags, Math.max(0, (request.answeredAt - request.event.timestamp) * 1000));
        native.sample('browser_data_received', tags, bytes);
        const isFailed = answer.status < 200 || answer.status > 399;
        if (answer.timing) native.sample('browser_http_req_failed', tags, isFailed ? 1 : 0);
    }

    ended(event, why) {
        const request = this.requests.get(event.requestId);
        if (!request) return;
        this.requests.delete(event.requestId);
        const response = request.answer;
        request.failed = why;
        request.finishedAt = event.timestamp;
        // By now the headers are known that the network has added.
        const { headers, body } = request.size();
        const kind = [['method', request.method()], ['resource_type', request.resourceType()]];
        const name = this.page.urlTags(request.url(), request.method());
        native.sample('browser_data_sent', [...name, ...kind], headers + body);
        if (response) this.record(request, response, [...name, ...kind], event.encodedDataLength ?? 0);
        this.page.emit(why ? 'requestfailed' : 'requestfinished', request);
    }
}
