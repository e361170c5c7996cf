// What clients of sessions, forms and clouds need: batches of objects, names of URLs, bodies of bytes, signatures.
import http from 'k6/http';
import crypto from 'k6/crypto';
import { parseHTML } from 'k6/html';
class Request {
  constructor(method, url, params) {
    const given = params || {};
    this.method = method; this.url = url; this.body = given['body'] || null; delete given['body']; this.params = given;
    if (typeof url === 'object' && 'name' in url && 'url' in url && 'clean_url' in url) { this.url = url.url; this.params.tags = Object.assign({}, this.params.tags, { name: url.name }); }
  }
}
class Session {
  constructor(base) { this.base = base; this.headers = {}; this.tags = {}; }
  url(parts, ...values) { return http.url(parts, ...values); }
  merged(request) {
    const url = String(request.url).startsWith('http') ? request.url : this.base + request.url;
    const params = Object.assign({}, request.params);
    params.headers = Object.assign({}, this.headers, params.headers); params.tags = Object.assign({}, this.tags, params.tags);
    return { method: request.method, url, body: request.body, params };
  }
  request(method, url, body, params) { const r = this.merged(new Request(method, url, Object.assign({ body }, params))); return http.request(r.method, r.url, r.body, r.params); }
  async asyncRequest(method, url, body, params) { const r = this.merged(new Request(method, url, Object.assign({ body }, params))); return http.asyncRequest(r.method, r.url, r.body, r.params); }
  batch(requests) { return http.batch(requests.map((one) => this.merged(one))); }
}
const bytesOf = (data) => (typeof data === 'string' ? Array.from(data, (c) => c.charCodeAt(0) & 0xff) : Array.from(new Uint8Array(data)));
class Form {
  constructor() { this.boundary = '----Boundary1234'; this.parts = []; }
  append(field, data) { this.parts.push({ field, file: typeof data === 'string' ? { data, content_type: 'text/plain' } : data }); }
  body() {
    const all = [];
    for (const { field, file } of this.parts) {
      Array.prototype.push.apply(all, bytesOf(`--${this.boundary}\r\nContent-Disposition: form-data; name="${field}"${file.filename ? `; filename="${file.filename}"` : ''}\r\nContent-Type: ${file.content_type || 'application/octet-stream'}\r\n\r\n`));
      Array.prototype.push.apply(all, Array.isArray(file.data) ? file.data : bytesOf(file.data));
      Array.prototype.push.apply(all, bytesOf('\r\n'));
    }
    Array.prototype.push.apply(all, bytesOf(`--${this.boundary}--\r\n`));
    return new Uint8Array(all).buffer;
  }
}
const escaped = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
function signed({ method, path, query, headers, body }) {
  const date = new Date(Date.UTC(2026, 0, 2, 3, 4, 5)).toISOString().replace(/[:-]|\.\d{3}/g, '');
  const all = Object.assign({ 'x-amz-date': date }, headers);
  const names = Object.keys(all).map((name) => name.toLowerCase()).sort();
  const canonical = [method, path.split('/').map(escaped).join('/'), Object.keys(query).sort().map((k) => `${escaped(k)}=${escaped(query[k])}`).join('&'), ...names.map((n) => `${n}:${all[n].replace(/\s+/g, ' ').trim()}`), '', names.join(';'), crypto.sha256(body, 'hex')].join('\n');
  const scope = `${date.slice(0, 8)}/eu-west-1/s3/aws4_request`;
  const key = ['eu-west-1', 's3', 'aws4_request'].reduce((k, part) => crypto.hmac('sha256', k, part, 'binary'), crypto.hmac('sha256', 'AWS4secret', date.slice(0, 8), 'binary'));
  const hasher = crypto.createHash('sha256'); hasher.update(canonical);
  return crypto.hmac('sha256', key, ['AWS4-HMAC-SHA256', date, scope, hasher.digest('hex')].join('\n'), 'hex');
}
const sent = (r) => r.request.body.length + ' ' + Object.keys(r.request.headers).sort().join();
export default async function () {
  const session = new Session(__ENV.URL);
  session.headers.a = 'b'; session.tags.of = 'session';
  console.log(session.request('GET', '/fast').status, session.request('POST', '/echo', 'text', { headers: { a: 'c' } }).request.headers.A.join());
  const named = session.url`${__ENV.URL}/fast?x=${1}`;
  console.log(named.name.replace(__ENV.URL, 'U'), named.clean_url.replace(__ENV.URL, 'U'), Object.keys(named).sort().join());
  const many = session.batch([new Request('GET', '/fast'), new Request('POST', '/echo', { body: { k: 'v w' } }), new Request('GET', named)]);
  console.log(many.length, many.map((r) => r.status).join(), many[1].request.body);
  console.log((await session.asyncRequest('PUT', '/echo', 'x')).request.method, (await Promise.all([1, 2].map((n) => session.asyncRequest('GET', `/fast?n=${n}`)))).map((r) => r.status).join());
  const form = new Form();
  form.append('text', 'a'); form.append('file', http.file('\u00e9\u0001', 'f.bin')); form.append('bytes', http.file(new Uint8Array([0, 255]).buffer, 'g.bin', 'image/x')); form.append('list', { data: [1, 2], filename: 'h' });
  const posted = http.post(`${__ENV.URL}/echo`, form.body(), { headers: { 'Content-Type': `multipart/form-data; boundary=${form.boundary}` } });
  console.log(posted.status, crypto.sha256(form.body(), 'hex'), sent(posted));
  console.log(signed({ method: 'PUT', path: "/a b/it's", query: { 'b(': '1', a: 'ä' }, headers: { host: 'x.test', 'x-amz-acl': ' public   read ' }, body: '' }));
  console.log(signed({ method: 'GET', path: '/', query: {}, headers: { host: 'x.test' }, body: new Uint8Array([1, 2, 255]).buffer }));
  const xml = parseHTML('<?xml version="1.0"?><ListResult><Contents><Key>a.txt</Key><Size>3</Size></Contents><Contents><Key>b &amp; c</Key></Contents><Error><Code>NoSuchKey</Code><Message>gone</Message></Error></ListResult>');
  console.log(xml.find('Contents').map((_, one) => one.children('Key').text()).join(), xml.find('Code').text(), xml.find('Message').text(), xml.find('ListResult > Contents').size());
  const error = Object.assign(new Error('the key is gone'), { code: 'NoSuchKey', operation: 'getObject' });
  console.log(error.name, error.code, `${error}`, crypto.hexEncode(crypto.md5('x', 'binary')), typeof globalThis.crypto.randomUUID());
}
