// Runs in the page: finds elements, says what state they are in, and changes them.

(() => {
    const squash = (text) => text.replace(/\u200b/g, '').trim().replace(/\s+/g, ' ');
    const matches = (pattern, text) => {
        if (pattern.source !== undefined) return new RegExp(pattern.source, pattern.flags).test(text);
        const wanted = squash(pattern.text);
        return pattern.exact ? squash(text) === wanted
            : squash(text).toLowerCase().includes(wanted.toLowerCase());
    };
    const ignored = new Set(['SCRIPT', 'NOSCRIPT', 'STYLE', 'HEAD', 'TEMPLATE', 'TITLE']);
    const textOf = (element) => {
        if (element.nodeName === 'INPUT' && ['submit', 'button', 'reset'].includes(element.type)) return element.value;
        return element.textContent ?? '';
    };
    /** All elements under a root, with those of open shadow trees. */
    const all = (root, selector) => {
        const found = [...root.querySelectorAll(selector)];
        const walk = (node) => {
            for (const child of node.querySelectorAll('*')) {
                if (!child.shadowRoot) continue;
                found.push(...child.shadowRoot.querySelectorAll(selector));
                walk(child.shadowRoot);
            }
        };
        walk(root);
        if (root.shadowRoot) {
            found.push(...root.shadowRoot.querySelectorAll(selector));
            walk(root.shadowRoot);
        }
        return found;
    };
    const isVisible = (element) => {
        if (!element.isConnected) return false;
        const style = element.ownerDocument.defaultView.getComputedStyle(element);
        if (style.visibility !== 'visible') return false;
        if (style.display === 'contents') return [...element.children].some(isVisible) || element.textContent.trim() !== '';
        const box = element.getBoundingClientRect();
        return box.width > 0 && box.height > 0;
    };
    const isHiddenForRole = (element) => {
        for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
            if (at.getAttribute('aria-hidden') === 'true') return true;
            const style = getComputedStyle(at);
            if (style.display === 'none' || (at === element && style.visibility === 'hidden')) return true;
        }
        return false;
    };
    const heading = { H1: 1, H2: 2, H3: 3, H4: 4, H5: 5, H6: 6 };
    const inputRoles = { button: 'button', checkbox: 'checkbox', image: 'button', number: 'spinbutton', radio: 'radio', range: 'slider', reset: 'button', submit: 'button', search: 'searchbox', email: 'textbox', tel: 'textbox', text: 'textbox', url: 'textbox', '': 'textbox' };
    const roles = { ARTICLE: 'article', ASIDE: 'complementary', BLOCKQUOTE: 'blockquote', BUTTON: 'button', CAPTION: 'caption', CODE: 'code', DATALIST: 'listbox', DD: 'definition', DETAILS: 'group', DFN: 'term', DIALOG: 'dialog', DT: 'term', EM: 'emphasis', FIELDSET: 'group', FIGURE: 'figure', HR: 'separator', HTML: 'document', LI: 'listitem', MAIN: 'main', MATH: 'math', MENU: 'list', METER: 'meter', NAV: 'navigation', OL: 'list', OPTGROUP: 'group', OPTION: 'option', OUTPUT: 'status', P: 'paragraph', PROGRESS: 'progressbar', SEARCH: 'search', STRONG: 'strong', SUB: 'subscript', SUP: 'superscript', SVG: 'img', TABLE: 'table', TBODY: 'rowgroup', TD: 'cell', TEXTAREA: 'textbox', TFOOT: 'rowgroup', THEAD: 'rowgroup', TIME: 'time', TR: 'row', UL: 'list' };
    const roleOf = (element) => {
        const own = (element.getAttribute('role') ?? '').trim().split(/\s+/)[0];
        if (own) return own;
        const name = element.nodeName.toUpperCase();
        if (heading[name]) return 'heading';
        const attr = (key) => element.hasAttribute(key);
        switch (name) {
            case 'A': case 'AREA': return attr('href') ? 'link' : null;
            case 'IMG': return element.getAttribute('alt') === '' ? 'presentation' : 'img';
            case 'INPUT': {
                const type = (element.getAttribute('type') ?? '').toLowerCase();
                if (attr('list') && ['email', 'tel', 'text', 'url', 'search', ''].includes(type)) return 'combobox';
                if (type === 'hidden') return null;
                return inputRoles[type] ?? (['file', 'password', 'color', 'date', 'time', 'datetime-local', 'month', 'week'].includes(type) ? null : 'textbox');
            }
            case 'SELECT': return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
            case 'SECTION': return attr('aria-label') || attr('aria-labelledby') ? 'region' : null;
            case 'FORM': return attr('aria-label') || attr('aria-labelledby') || attr('name') ? 'form' : null;
            case 'HEADER': return element.closest('article,aside,main,nav,section') ? null : 'banner';
            case 'FOOTER': return element.closest('article,aside,main,nav,section') ? null : 'contentinfo';
            case 'TH': return element.getAttribute('scope') === 'row' ? 'rowheader' : 'columnheader';
            default: return roles[name] ?? null;
        }
    };
    const labelsOf = (element) => {
        const ids = element.getAttribute('aria-labelledby');
        if (ids) {
            const found = ids.split(/\s+/).map((id) => element.getRootNode().getElementById(id)).filter(Boolean);
            if (found.length) return [found.map((label) => label.textContent).join(' ')];
        }
        const own = element.getAttribute('aria-label');
        if (own?.trim()) return [own];
        return [...element.labels ?? []].map((label) => label.textContent);
    };
    const fromContent = new Set(['button', 'cell', 'checkbox', 'columnheader', 'gridcell', 'heading', 'link', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'option', 'radio', 'row', 'rowheader', 'switch', 'tab', 'tooltip', 'treeitem']);
    const content = (node) => {
        if (node.nodeType === 3) return node.nodeValue;
        if (node.nodeType !== 1 || ignored.has(node.nodeName)) return '';
        if (node.getAttribute('aria-hidden') === 'true') return '';
        const label = node.getAttribute('aria-label');
        if (label?.trim()) return label;
        if (node.nodeName === 'IMG') return node.alt;
        const block = getComputedStyle(node).display !== 'inline' ? ' ' : '';
        return block + [...(node.shadowRoot ?? node).childNodes].map(content).join('') + block;
    };
    const nameOf = (element) => {
        const labels = labelsOf(element);
        if (labels.length) return squash(labels.join(' '));
        const tag = element.nodeName;
        if (tag === 'INPUT' && ['button', 'submit', 'reset'].includes(element.type)) {
            return squash(element.value || { submit: 'Submit', reset: 'Reset' }[element.type] || element.title);
        }
        if (tag === 'IMG' || tag === 'AREA' || (tag === 'INPUT' && element.type === 'image')) {
            if (element.getAttribute('alt')) return squash(element.alt);
        }
        const first = { FIELDSET: 'legend', TABLE: 'caption', FIGURE: 'figcaption' }[tag];
        const titled = first && element.querySelector(`:scope > ${first}`);
        if (titled) return squash(titled.textContent);
        if (tag.toLowerCase() === 'svg') return squash(element.querySelector('title')?.textContent ?? '');
        if (fromContent.has(roleOf(element))) {
            const text = squash([...(element.shadowRoot ?? element).childNodes].map(content).join(''));
            if (text) return text;
        }
        return squash(element.title || element.getAttribute('placeholder') || '');
    };
    const flag = (element, aria, own) => {
        const value = element.getAttribute(aria);
        return value === null ? Boolean(own) : value === 'true';
    };
    const hasStates = (element, wanted) => {
        const states = {
            checked: () => flag(element, 'aria-checked', element.checked),
            disabled: () => isDisabled(element),
            expanded: () => flag(element, 'aria-expanded', element.open),
            pressed: () => flag(element, 'aria-pressed', false),
            selected: () => flag(element, 'aria-selected', element.selected),
            level: () => Number(element.getAttribute('aria-level') ?? heading[element.nodeName.toUpperCase()] ?? 0),
        };
        return Object.keys(states).every((key) => wanted[key] === undefined || wanted[key] === null || states[key]() === wanted[key]);
    };
    const isDisabled = (element) => {
        if (element.closest('[aria-disabled="true"]')) return true;
        const natives = ['BUTTON', 'INPUT', 'SELECT', 'TEXTAREA', 'OPTION', 'OPTGROUP', 'FIELDSET'];
        return natives.includes(element.nodeName) && element.matches(':disabled');
    };
    const engines = {
        css: (root, { text }) => all(root, text),
        xpath: (root, { text }) => {
            const path = text.startsWith('/') && root.nodeType !== 9 ? `.${text}` : text;
            const result = (root.ownerDocument ?? root).evaluate(path, root, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
            return Array.from({ length: result.snapshotLength }, (_, i) => result.snapshotItem(i)).filter((node) => node.nodeType === 1);
        },
        text: (root, { pattern }) => {
            const has = (element) => !ignored.has(element.nodeName) && matches(pattern, textOf(element));
            const found = all(root, '*').filter(has);
            // Only the innermost.
            return found.filter((element) => ![...element.children].some(has));
        },
        role: (root, { role, name, states }) => all(root, '*').filter((element) => roleOf(element) === role
            && hasStates(element, states)
            && (states.includeHidden || !isHiddenForRole(element))
            && (!name || matches(name, nameOf(element)))),
        label: (root, { pattern }) => all(root, 'input,textarea,select,button,meter,output,progress,[aria-label],[aria-labelledby]')
            .filter((element) => labelsOf(element).some((label) => matches(pattern, label))),
        attribute: (root, { name, pattern }) => all(root, `[${name}]`)
            .filter((element) => (pattern.exact || pattern.source !== undefined
                ? matches(pattern, element.getAttribute(name))
                : element.getAttribute(name).toLowerCase().includes(pattern.text.toLowerCase()))),
        testid: (root, { name, pattern }) => all(root, `[${name}]`)
            .filter((element) => (pattern.source === undefined ? element.getAttribute(name) === pattern.text : matches(pattern, element.getAttribute(name)))),
    };
    const filters = {
        nth: (elements, { index }) => elements.slice(index < 0 ? elements.length + index : index).slice(0, 1),
        hasText: (elements, { pattern }) => elements.filter((element) => matches(pattern, textOf(element))),
        hasNotText: (elements, { pattern }) => elements.filter((element) => !matches(pattern, textOf(element))),
        visible: (elements, { wanted }) => elements.filter((element) => isVisible(element) === wanted),
        has: (elements, { steps }) => elements.filter((element) => find(element, steps).length > 0),
        hasNot: (elements, { steps }) => elements.filter((element) => find(element, steps).length === 0),
    };
    const find = (root, steps) => {
        let found = [root];
        for (const step of steps) {
            if (filters[step.engine]) {
                found = filters[step.engine](found, step);
                continue;
            }
            const next = new Set();
            for (const from of found) for (const element of engines[step.engine](from, step)) next.add(element);
            found = [...next];
        }
        return found;
    };
    const frame = () => new Promise((resolve) => {
        let isDone = false;
        const done = () => { if (!isDone) { isDone = true; resolve(); } };
        requestAnimationFrame(done);
        setTimeout(done, 50);
    });
    const rect = (element) => {
        const { x, y, width, height } = element.getBoundingClientRect();
        return { x, y, width, height };
    };
    const editable = (element) => !isDisabled(element) && !element.readOnly;
    const retarget = (element) => (element.nodeName === 'LABEL' && element.control ? element.control : element);
    const states = {
        attached: (element) => element.isConnected,
        visible: isVisible,
        hidden: (element) => !isVisible(element),
        enabled: (element) => !isDisabled(element),
        disabled: isDisabled,
        editable,
        checked: (element) => {
            const target = retarget(element);
            const role = target.getAttribute('role');
            if (['checkbox', 'radio', 'switch', 'menuitemcheckbox', 'menuitemradio'].includes(role)) return target.getAttribute('aria-checked') === 'true';
            if (target.nodeName !== 'INPUT' || !['checkbox', 'radio'].includes(target.type)) throw new Error('Not a checkbox or radio button');
            return target.checked;
        },
    };
    /** What the element lacks for an action; nothing if it lacks nothing. */
    const lacks = async (element, wanted) => {
        if (!element.isConnected) return 'element is not attached to the DOM';
        for (const state of wanted) {
            if (state === 'stable') {
                const before = rect(element);
                await frame();
                const after = rect(element);
                if (['x', 'y', 'width', 'height'].some((key) => before[key] !== after[key])) return 'element is not stable';
            } else if (!states[state](element)) return `element is not ${state}`;
        }
        return null;
    };
    const hitTarget = (element, point) => {
        const root = element.getRootNode();
        let hit = (root.elementFromPoint ? root : document).elementFromPoint(point.x, point.y);
        if (!hit) return 'element is outside of the viewport';
        const over = hit;
        const labels = [...retarget(element) === element ? element.labels ?? [] : []];
        for (; hit; hit = hit.parentElement ?? hit.getRootNode().host) {
            if (hit === element || labels.includes(hit)) return null;
        }
        if (element.nodeName === 'LABEL' && element.control === over) return null;
        return `<${over.nodeName.toLowerCase()}> intercepts pointer events`;
    };
    const fire = (element, ...types) => types.forEach((type) => element.dispatchEvent(new Event(type, { bubbles: true, composed: true })));
    const actions = {
        fill: (element, value) => {
            const target = retarget(element);
            if (target.isContentEditable) {
                target.focus();
                getSelection().selectAllChildren(target);
                return { insert: value };
            }
            if (!['INPUT', 'TEXTAREA'].includes(target.nodeName)) throw new Error('Element is not an <input>, <textarea> or [contenteditable] element');
            const plain = ['color', 'date', 'time', 'datetime-local', 'month', 'week', 'range'].includes(target.type);
            if (target.nodeName === 'INPUT' && ['checkbox', 'radio', 'file', 'button', 'submit', 'image', 'reset'].includes(target.type)) throw new Error(`Input of type "${target.type}" cannot be filled`);
            if (target.type === 'number' && value.trim() !== '' && Number.isNaN(Number(value))) throw new Error('Cannot type text into input[type=number]');
            if (plain) {
                target.focus();
                target.value = value.trim();
                fire(target, 'input', 'change');
                return {};
            }
            target.focus();
            target.select();
            return { insert: value };
        },
        select: (element, wanted) => {
            const target = retarget(element);
            if (target.nodeName !== 'SELECT') throw new Error('Element is not a <select> element');
            const options = [...target.options];
            const is = (option, index) => (want) => {
                if (typeof want === 'string') return option.value === want || squash(option.label) === squash(want);
                return (want.value === undefined || option.value === want.value)
                    && (want.label === undefined || squash(option.label) === squash(want.label))
                    && (want.index === undefined || index === want.index);
            };
            const chosen = options.filter((option, index) => wanted.some(is(option, index))).slice(0, target.multiple ? undefined : 1);
            if (wanted.length && !chosen.length) return { retry: 'did not find some options' };
            if (target.multiple || !chosen.length) options.forEach((option) => { option.selected = chosen.includes(option); });
            else chosen[0].selected = true;
            fire(target, 'input', 'change');
            return { value: chosen.map((option) => option.value) };
        },
        focus: (element) => { element.focus(); return {}; },
        selectText: (element) => {
            if (['INPUT', 'TEXTAREA'].includes(element.nodeName)) { element.select(); element.focus(); } else getSelection().selectAllChildren(element);
            return {};
        },
        dispatch: (element, type, init) => {
            const kinds = [[/^(mouse|click|dblclick|auxclick|contextmenu)/, MouseEvent], [/^key/, KeyboardEvent], [/^touch/, self.TouchEvent], [/^pointer/, PointerEvent], [/^(focus|blur)/, FocusEvent], [/^(drag|drop)/, DragEvent]];
            const Kind = kinds.find(([name]) => name.test(type))?.[1] ?? Event;
            element.dispatchEvent(new Kind(type, { bubbles: true, cancelable: true, composed: true, ...init }));
            return {};
        },
        scroll: (element, deep) => {
            if (deep) element.scrollIntoView({ block: deep, inline: 'center', behavior: 'instant' });
            else if (element.scrollIntoViewIfNeeded) element.scrollIntoViewIfNeeded(true);
            const { x, y, width, height } = rect(element);
            return { value: { x: x + width / 2, y: y + height / 2, width, height } };
        },
        textContent: (element) => ({ value: element.textContent }),
        innerText: (element) => {
            if (element.namespaceURI !== 'http://www.w3.org/1999/xhtml') throw new Error('Node is not an HTMLElement');
            return { value: element.innerText };
        },
        innerHTML: (element) => ({ value: element.innerHTML }),
        inputValue: (element) => {
            const target = retarget(element);
            if (!['INPUT', 'TEXTAREA', 'SELECT'].includes(target.nodeName)) throw new Error('Node is not an <input>, <textarea> or <select> element');
            return { value: target.value };
        },
        getAttribute: (element, name) => ({ value: element.getAttribute(name) }),
        state: (element, name) => ({ value: states[name](element) }),
        nothing: () => ({}),
    };
    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    return {
        find,
        lacks,
        hitTarget,
        states,
        actions,
        rect,
        /** Acts on an element as soon as it lacks nothing, within a short time. */
        async act(element, wanted, action, args, budget) {
            const end = performance.now() + budget;
            for (;;) {
                let why = await lacks(element, wanted);
                if (!why) {
                    const done = actions[action](element, ...args);
                    if (!done.retry) return done;
                    why = done.retry;
                }
                if (!element.isConnected || performance.now() >= end) return { why };
                await pause(20);
            }
        },
        /** Waits until the elements that match are in a state. */
        async waitFor(root, steps, state, isStrict, budget) {
            const end = performance.now() + budget;
            for (;;) {
                const found = find(root, steps);
                if (isStrict && found.length > 1) throw new Error('strict mode violation, multiple elements returned for selector query');
                const first = found[0];
                const isThere = {
                    attached: () => first,
                    detached: () => !first,
                    visible: () => first && isVisible(first),
                    hidden: () => !first || !isVisible(first),
                }[state]();
                if (isThere) return { element: first };
                if (performance.now() >= end) return null;
                await pause(20);
            }
        },
    };
})()
