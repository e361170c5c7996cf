// The class of elements, as passed to `each` and returned by `get`.
(native, select) => {
  // Attributes by the names of their functions.
  const TEXTS = {
    accept: 'accept', action: 'action', alt: 'alt', charset: 'charset', cite: 'cite',
    content: 'content', coords: 'coords', dateTime: 'datetime', dirName: 'dirname',
    download: 'download', enctype: 'enctype', height: 'height', hrefLang: 'hreflang',
    htmlFor: 'for', httpEquiv: 'http-equiv', label: 'label', lang: 'lang', max: 'max',
    maxLength: 'maxlength', media: 'media', method: 'method', min: 'min', name: 'name',
    pattern: 'pattern', placeholder: 'placeholder', rel: 'rel', scope: 'scope', sizes: 'sizes',
    srcset: 'srcset', step: 'step', target: 'target', title: 'title', type: 'type',
    useMap: 'usemap', width: 'width', wrap: 'wrap',
  };
  const FLAGS = {
    autofocus: 'autofocus', autoplay: 'autoplay', checked: 'checked', controls: 'controls',
    defaultChecked: 'checked', defer: 'defer', disabled: 'disabled', loop: 'loop',
    multiple: 'multiple', noValidate: 'novalidate', readonly: 'readonly', required: 'required',
    reversed: 'reversed', selected: 'selected', defaultSelected: 'selected',
  };

  class Element {
    #page;
    #node;
    #url;

    constructor(page, node, url) {
      this.#page = page;
      this.#node = node;
      this.#url = url;
    }

    static of(page, node, url) {
      return node === undefined || node === null ? undefined : new Element(page, node, url);
    }

    static node(element) {
      return element.#node;
    }

    static page(element) {
      return element.#page;
    }

    #one(node) {
      return Element.of(this.#page, node, this.#url);
    }

    #all(nodes) {
      return nodes.map((node) => this.#one(node));
    }

    // The siblings (elements, or all nodes) before and after this one.
    #siblings(list) {
      const parent = this.#page.parent(this.#node);
      const all = parent === undefined || parent === null ? [] : this.#page[list](parent);
      const at = all.indexOf(this.#node);
      return [all.slice(0, Math.max(at, 0)), all.slice(at + 1)];
    }

    #closest(name) {
      let node = this.#page.parent(this.#node);
      while (node !== undefined && node !== null && this.#page.name(node) !== name) {
        node = this.#page.parent(node);
      }
      return this.#one(node);
    }

    nodeName() { return this.#page.name(this.#node); }
    tagName() { return this.#page.name(this.#node); }
    nodeType() { return this.#page.kind(this.#node); }
    nodeValue() { return this.#page.value(this.#node) ?? undefined; }
    innerHTML() { return this.#page.html(this.#node); }
    textContent() { return this.#page.text(this.#node); }
    // Only some elements have it.
    get text() {
      const has = ['a', 'option', 'script', 'title'].includes(this.nodeName());
      return has ? () => this.textContent() : undefined;
    }
    selection() { return select(this.#page, [this.#node], this.#url); }
    toString() { return '[object html.Node]'; }
    id() { return this.getAttribute('id') ?? ''; }
    className() { return this.getAttribute('class') ?? ''; }
    classList() { return this.className().split(/\s+/).filter(Boolean); }
    namespaceURI() { return 'http://www.w3.org/1999/xhtml'; }
    ownerDocument() { return this.#one(0); }

    getAttribute(name) { return this.#page.attribute(this.#node, String(name)) ?? undefined; }
    hasAttribute(name) { return this.getAttribute(name) !== undefined; }
    hasAttributes() { return this.#page.attributes(this.#node).length > 0; }
    getAttributeNode(name) {
      return this.hasAttribute(name) ? this.attributes()[name] : undefined;
    }
    attributes() {
      const pairs = this.#page.attributes(this.#node);
      return Object.fromEntries(pairs.map(([name, value]) => [
        name,
        { name, value, ownerElement: this, prefix: '', namespaceURI: '', localName: name },
      ]));
    }

    childNodes() { return this.#all(this.#page.children(this.#node)); }
    children() { return this.#all(this.#page.elements(this.#node)); }
    childElementCount() { return this.#page.elements(this.#node).length; }
    hasChildNodes() { return this.#page.children(this.#node).length > 0; }
    firstChild() { return this.#one(this.#page.children(this.#node).at(0)); }
    lastChild() { return this.#one(this.#page.children(this.#node).at(-1)); }
    firstElementChild() { return this.#one(this.#page.elements(this.#node).at(0)); }
    lastElementChild() { return this.#one(this.#page.elements(this.#node).at(-1)); }
    nextSibling() { return this.#one(this.#siblings('children')[1].at(0)); }
    previousSibling() { return this.#one(this.#siblings('children')[0].at(-1)); }
    nextElementSibling() { return this.#one(this.#siblings('elements')[1].at(0)); }
    previousElementSibling() { return this.#one(this.#siblings('elements')[0].at(-1)); }
    parentNode() { return this.#one(this.#page.parent(this.#node)); }
    parentElement() {
      const parent = this.#page.parent(this.#node);
      return parent ? this.#one(parent) : undefined;
    }
    contains(other) {
      let node = Element.node(other);
      while (node !== undefined && node !== null && node !== this.#node) {
        node = this.#page.parent(node);
      }
      return node === this.#node;
    }
    isSameNode(other) { return Element.node(other) === this.#node; }
    isEqualNode(other) {
      return this.nodeName() === other.nodeName() && this.innerHTML() === other.innerHTML();
    }

    matches(selector) { return this.#page.matches(this.#node, String(selector)); }
    querySelectorAll(selector) {
      return this.#all(this.#page.find([this.#node], String(selector)));
    }
    querySelector(selector) { return this.querySelectorAll(selector)[0]; }
    getElementsByTagName(name) { return this.querySelectorAll(name); }
    getElementsByClassName(names) {
      return this.querySelectorAll(String(names).split(/\s+/).map((name) => `.${name}`).join(''));
    }

    value() { return this.selection().val() ?? ''; }
    form() { return this.#closest('form'); }
    elements() {
      return this.querySelectorAll('input, select, textarea, button, object, output, fieldset');
    }
    options() { return this.querySelectorAll('option'); }
    selectedOptions() { return this.querySelectorAll('option[selected]'); }
    length() { return this.nodeName() === 'form' ? this.elements().length : this.options().length; }
    relList() { return (this.getAttribute('rel') ?? '').split(/\s+/).filter(Boolean); }
    href() { return this.#absolute('href'); }
    src() { return this.#absolute('src'); }

    #absolute(name) {
      const url = this.getAttribute(name);
      return url === undefined ? '' : native.join(this.#url ?? '', url);
    }

    static {
      for (const part of ['protocol', 'host', 'hostname', 'port', 'pathname', 'search', 'hash',
        'origin', 'username', 'password']) {
        Element.prototype[part] = function () {
          return native.parts(this.href())[part] ?? '';
        };
      }
      for (const [name, attribute] of Object.entries(TEXTS)) {
        Element.prototype[name] = function () {
          return this.getAttribute(attribute) ?? '';
        };
      }
      for (const [name, attribute] of Object.entries(FLAGS)) {
        Element.prototype[name] = function () {
          return this.hasAttribute(attribute);
        };
      }
    }
  }
  return Element;
}
