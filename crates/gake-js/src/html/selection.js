// Selections: sets of nodes with k6's subset of jQuery's functions.
(native, makeElement) => {
  const select = (page, nodes, url, before) => new Selection(page, nodes, url, before);
  const Element = makeElement(native, select);
  const unique = (nodes) => [...new Set(nodes)];
  const isNode = (node) => node !== undefined && node !== null;

  class Selection {
    #page;
    #nodes;
    #before;

    constructor(page, nodes, url, before) {
      this.#page = page;
      this.#nodes = nodes;
      this.#before = before;
      this.url = url ?? '';
    }

    #made(nodes) {
      return select(this.#page, unique(nodes), this.url, this);
    }

    #one(node) {
      return select(this.#page, [node], this.url, this);
    }

    // The nodes of a selection or element.
    #meant(what) {
      if (what instanceof Selection) return what.#nodes;
      if (what instanceof Element) return [Element.node(what)];
      return undefined;
    }

    // A predicate of nodes from a selector, function, selection or element.
    #test(what) {
      if (!isNode(what)) return () => true;
      if (typeof what === 'function') return (node, at) => !!what(at, this.#one(node));
      const meant = this.#meant(what);
      if (meant) return (node) => meant.includes(node);
      return (node) => this.#page.matches(node, String(what));
    }

    #ancestors(node) {
      const ancestors = [];
      let parent = this.#page.parent(node);
      while (isNode(parent) && parent !== 0) {
        ancestors.push(parent);
        parent = this.#page.parent(parent);
      }
      return ancestors;
    }

    // The sibling elements after or before a node, the nearest first.
    #siblings(node, forward) {
      const parent = this.#page.parent(node);
      if (!isNode(parent)) return [];
      const all = this.#page.elements(parent);
      const at = all.indexOf(node);
      return forward ? all.slice(at + 1) : all.slice(0, at).reverse();
    }

    #walk(steps, until, filter) {
      const isEnd = isNode(until) ? this.#test(until) : () => false;
      const walked = this.#nodes.flatMap((node) => {
        const all = steps(node);
        const end = all.findIndex((one, at) => isEnd(one, at));
        return end < 0 ? all : all.slice(0, end);
      });
      return this.#made(walked.filter(this.#test(filter)));
    }

    add(what) {
      const more = this.#meant(what) ?? this.#page.find([0], String(what));
      return this.#made([...this.#nodes, ...more]);
    }
    attr(name, otherwise) {
      if (this.#nodes.length === 0) return otherwise;
      return this.#page.attribute(this.#nodes[0], String(name)) ?? otherwise;
    }
    children(filter) { return this.#walk((node) => this.#page.elements(node), null, filter); }
    closest(what) {
      const test = this.#test(what);
      const nearest = (node) => [node, ...this.#ancestors(node)].find((one) => test(one, 0));
      return this.#made(this.#nodes.map(nearest).filter(isNode));
    }
    contents() { return this.#made(this.#nodes.flatMap((node) => this.#page.children(node))); }
    data(name) {
      if (this.#nodes.length === 0) return undefined;
      if (isNode(name)) {
        const words = String(name).replace(/_/g, '-').replace(/([a-z0-9])([A-Z])/g, '$1-$2');
        const key = words.toLowerCase();
        const text = this.#page.attribute(this.#nodes[0], `data-${key}`);
        return isNode(text) ? datum(text) : undefined;
      }
      const all = {};
      for (const [key, text] of this.#page.attributes(this.#nodes[0])) {
        if (!key.startsWith('data-')) continue;
        all[camel(key.slice(5))] = datum(text);
      }
      return all;
    }
    each(visit) {
      this.#nodes.forEach((node, at) => visit(at, Element.of(this.#page, node, this.url)));
      return this;
    }
    end() { return this.#before ?? this; }
    eq(at) { return this.#made([this.#nodes.at(at)].filter(isNode)); }
    filter(what) { return this.#made(this.#nodes.filter(this.#test(what))); }
    find(what) {
      const meant = this.#meant(what);
      if (!meant) return this.#made(this.#page.find(this.#nodes, String(what)));
      const isBelow = (one) => this.#ancestors(one).some((node) => this.#nodes.includes(node));
      return this.#made(meant.filter((one) => this.#nodes.includes(0) || isBelow(one)));
    }
    first() { return this.eq(0); }
    single(what) { return this.#made(this.#page.find(this.#nodes, String(what)).slice(0, 1)); }
    get(at) {
      if (isNode(at)) return Element.of(this.#page, this.#nodes.at(at), this.url);
      return this.#nodes.map((node) => Element.of(this.#page, node, this.url));
    }
    has(what) {
      const meant = this.#meant(what);
      const found = (node) => (meant
        ? meant.some((one) => this.#ancestors(one).includes(node))
        : this.#page.find([node], String(what)).length > 0);
      return this.#made(this.#nodes.filter(found));
    }
    html() { return this.#nodes.length === 0 ? '' : this.#page.html(this.#nodes[0]); }
    index(what) {
      if (this.#nodes.length === 0) return -1;
      if (!isNode(what)) return this.#siblings(this.#nodes[0], false).length;
      const meant = this.#meant(what);
      if (meant) return this.#nodes.indexOf(meant[0]);
      return this.#page.find([0], String(what)).indexOf(this.#nodes[0]);
    }
    is(what) { return this.#nodes.some(this.#test(what)); }
    last() { return this.eq(-1); }
    map(make) { return this.#nodes.map((node, at) => make(at, this.#one(node))); }
    next(filter) { return this.#walk((node) => this.#siblings(node, true).slice(0, 1), null, filter); }
    nextAll(filter) { return this.#walk((node) => this.#siblings(node, true), null, filter); }
    nextUntil(until, filter) {
      return this.#walk((node) => this.#siblings(node, true), until, filter);
    }
    not(what) {
      const test = this.#test(what);
      return this.#made(this.#nodes.filter((node, at) => !test(node, at)));
    }
    parent(filter) { return this.#walk((node) => this.#ancestors(node).slice(0, 1), null, filter); }
    parents(filter) { return this.#walk((node) => this.#ancestors(node), null, filter); }
    parentsUntil(until, filter) { return this.#walk((node) => this.#ancestors(node), until, filter); }
    prev(filter) {
      return this.#walk((node) => this.#siblings(node, false).slice(0, 1), null, filter);
    }
    prevAll(filter) { return this.#walk((node) => this.#siblings(node, false), null, filter); }
    prevUntil(until, filter) {
      return this.#walk((node) => this.#siblings(node, false), until, filter);
    }
    siblings(filter) {
      const all = (node) => [...this.#siblings(node, false).reverse(), ...this.#siblings(node, true)];
      return this.#walk(all, null, filter);
    }
    size() { return this.#nodes.length; }
    slice(from, to) { return this.#made(this.#nodes.slice(from, to)); }
    text() { return this.#nodes.map((node) => this.#page.text(node)).join(''); }
    toArray() { return this.#nodes.map((node) => this.#one(node)); }
    val() {
      if (this.#nodes.length === 0) return undefined;
      const [node] = this.#nodes;
      const value = this.#page.attribute(node, 'value');
      switch (this.#page.name(node)) {
        case 'input':
          return value ?? (/^(checkbox|radio)$/.test(this.attr('type')) ? 'on' : '');
        case 'button':
          return value ?? '';
        case 'textarea':
          return this.#page.html(node);
        case 'option':
          return value ?? this.#page.html(node);
        case 'select': {
          const chosen = this.#page.find([node], 'option[selected]').map((one) => this.#one(one).val());
          return isNode(this.attr('multiple')) ? chosen : chosen[0] ?? '';
        }
        default:
          return undefined;
      }
    }
    serializeArray() {
      const forms = this.#nodes.filter((node) => this.#page.name(node) === 'form');
      const rest = this.#nodes.filter((node) => !forms.includes(node));
      const all = [...this.#page.find(forms, 'input, select, textarea'), ...rest];
      const sent = all.map((node) => this.#one(node)).filter(isSent);
      return sent.map((one) => ({ name: one.attr('name'), value: one.val() }));
    }
    serializeObject() {
      return Object.fromEntries(this.serializeArray().map(({ name, value }) => [name, value]));
    }
    serialize() {
      return encoded(this.serializeObject());
    }
  }

  // Functions are shown among a selection's properties, as k6 does; private ones are not.
  const isSent = (one) => {
    if (!one.attr('name') || !one.is('input, select, textarea')) return false;
    const type = one.attr('type') ?? '';
    if (/^(checkbox|radio)$/.test(type)) return one.attr('checked') === 'checked';
    return !/^(submit|button|reset|image|file)$/.test(type);
  };
  // As in k6, Go's acronyms are in capitals unless they come first.
  const CAPITALS = new Set(('acl api ascii cpu css dns eof guid html http https id ip json lhs qps ram '
    + 'rhs rpc sla smtp sql ssh tcp tls ttl udp ui uid uri url utf8 uuid vm xml xmpp xsrf xss').split(' '));
  const capital = (word) => {
    if (word === 'oauth') return 'OAuth';
    return CAPITALS.has(word) ? word.toUpperCase() : word.slice(0, 1).toUpperCase() + word.slice(1);
  };
  const camel = (key) => {
    const [first, ...words] = key.split('-');
    return first + words.map(capital).join('');
  };
  const datum = (text) => {
    if (text === 'true') return true;
    if (text === 'false') return false;
    if (text === 'null') return null;
    if (/^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) return Number(text);
    if (/^[[{]/.test(text)) {
      try {
        return JSON.parse(text);
      } catch {
        return text;
      }
    }
    return text;
  };
  const encoded = (fields) => {
    const pairs = [];
    for (const [name, value] of Object.entries(fields)) {
      for (const one of [value].flat()) pairs.push([name, String(one)]);
    }
    const order = (a, b) => (a < b ? -1 : Number(a > b));
    return native.encode(pairs.sort((a, b) => order(a[0], b[0])));
  };

  const parse = (text, url) => select(native.parse(text), [0], url);
  const page = (response) => {
    if (!isNode(response.body)) native.fail('the body is null so we can\'t transform it to HTML - this likely was because of a request error getting the response');
    return parse(response.body, response.url);
  };
  return {
    parseHTML: (text) => parse(text),
    html: (response, selector) => (isNode(selector) ? page(response).find(selector) : page(response)),
    submitForm: (request, response, args = {}) => {
      const form = page(response).find(args?.formSelector ?? 'form');
      if (form.size() === 0) {
        native.fail(`no form found for selector '${args?.formSelector ?? 'form'}' in response '${response.url}'`);
      }
      const method = (form.attr('method') ?? 'get').toUpperCase();
      const url = native.join(response.url, form.attr('action') ?? response.url);
      const values = form.serializeObject();
      const submit = form.find(args?.submitSelector ?? '[type="submit"]');
      if (submit.attr('name')) values[submit.attr('name')] = submit.val();
      Object.assign(values, args?.fields ?? {});
      if (method !== 'GET') return request(method, url, values, args?.params);
      const [whole, hash] = url.split('#');
      const [path] = whole.split('?');
      const search = encoded(values);
      const target = (search ? `${path}?${search}` : path) + (hash ? `#${hash}` : '');
      return request('GET', target, null, args?.params);
    },
    clickLink: (request, response, args = {}) => {
      const selector = args?.selector ?? 'a[href]';
      const link = page(response).find(selector).first();
      if (link.size() === 0) {
        native.fail(`no element found for selector '${selector}' in response '${response.url}'`);
      }
      const href = link.attr('href');
      if (!isNode(href)) {
        native.fail(`no valid href attribute value found on element '${link.get(0).nodeName()}' in response '${response.url}'`);
      }
      return request('GET', native.join(response.url, href), null, args?.params);
    },
  };
}
