// Keys, mouse and touch of a page.

const SHIFTED = { '!': '1', '@': '2', '#': '3', $: '4', '%': '5', '^': '6', '&': '7', '*': '8', '(': '9', ')': '0', _: '-', '+': '=', '{': '[', '}': ']', '|': '\\', ':': ';', '"': "'", '<': ',', '>': '.', '?': '/', '~': '`' };
const PUNCTUATION = { '-': ['Minus', 189], '=': ['Equal', 187], '[': ['BracketLeft', 219], ']': ['BracketRight', 221], '\\': ['Backslash', 220], ';': ['Semicolon', 186], "'": ['Quote', 222], ',': ['Comma', 188], '.': ['Period', 190], '/': ['Slash', 191], '`': ['Backquote', 192], ' ': ['Space', 32] };
const NAMED = { Escape: 27, Tab: 9, Backspace: 8, Enter: 13, Delete: 46, Insert: 45, Home: 36, End: 35, PageUp: 33, PageDown: 34, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, CapsLock: 20, NumLock: 144, ScrollLock: 145, Pause: 19, PrintScreen: 44, ContextMenu: 93, Shift: 16, Control: 17, Alt: 18, Meta: 91 };
const MODIFIERS = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

/** What Chromium needs to know of a key. */
const keyOf = (name) => {
    const key = { ControlOrMeta: 'Control', ShiftLeft: 'Shift', ShiftRight: 'Shift', ControlLeft: 'Control', ControlRight: 'Control', AltLeft: 'Alt', AltRight: 'Alt', MetaLeft: 'Meta', MetaRight: 'Meta', Space: ' ', NumpadEnter: 'Enter', '\n': 'Enter', '\r': 'Enter' }[name] ?? name;
    if (key === 'Enter') return { key, code: 'Enter', number: 13, text: '\r' };
    if (NAMED[key]) return { key, code: MODIFIERS[key] ? `${key}Left` : key, number: NAMED[key], text: '' };
    if (/^F([1-9]|1[0-2])$/.test(key)) return { key, code: key, number: 111 + Number(key.slice(1)), text: '' };
    const letter = /^Key([A-Z])$/.exec(key)?.[1].toLowerCase();
    const digit = /^(?:Digit|Numpad)([0-9])$/.exec(key)?.[1];
    const named = Object.keys(PUNCTUATION).find((known) => PUNCTUATION[known][0] === key);
    const text = letter ?? digit ?? named ?? key;
    if ([...text].length !== 1) return undefined;
    const plain = SHIFTED[text] ?? text;
    if (/^[a-z]$/i.test(plain)) return { key: text, code: `Key${plain.toUpperCase()}`, number: plain.toUpperCase().charCodeAt(0), text };
    if (/^[0-9]$/.test(plain)) return { key: text, code: `Digit${plain}`, number: plain.charCodeAt(0), text };
    if (PUNCTUATION[plain]) return { key: text, code: PUNCTUATION[plain][0], number: PUNCTUATION[plain][1], text };
    return { key: text, text, isUnknown: true };
};
/** The upper-case letter and so on that Shift gives. */
const shifted = (text) => (/^[a-z]$/.test(text) ? text.toUpperCase() : Object.keys(SHIFTED).find((upper) => SHIFTED[upper] === text) ?? text);

class Keyboard {
    constructor(page) {
        hide(this, { page, modifiers: 0, pressed: new Set() });
    }

    async down(name) {
        const key = keyOf(String(name));
        if (!key || key.isUnknown) throw goError(`cannot do key down: ${quote(name)} is not a valid key for layout "us"`);
        this.modifiers |= MODIFIERS[key.key] ?? 0;
        const isShifted = this.modifiers & MODIFIERS.Shift && key.text && key.text !== '\r';
        const shown = isShifted ? shifted(key.text) : key.text;
        const text = this.modifiers & ~MODIFIERS.Shift ? '' : shown;
        const autoRepeat = this.pressed.has(key.code);
        this.pressed.add(key.code);
        await this.page.send('Input.dispatchKeyEvent', {
            type: text ? 'keyDown' : 'rawKeyDown',
            modifiers: this.modifiers,
            windowsVirtualKeyCode: key.number,
            code: key.code,
            key: isShifted ? shown : key.key,
            text,
            unmodifiedText: text,
            autoRepeat,
            commands: this.modifiers === MODIFIERS.Control && key.code === 'KeyA' ? ['selectAll'] : [],
        });
    }

    async up(name) {
        const key = keyOf(String(name));
        if (!key || key.isUnknown) throw goError(`cannot do key up: ${quote(name)} is not a valid key for layout "us"`);
        this.modifiers &= ~(MODIFIERS[key.key] ?? 0);
        this.pressed.delete(key.code);
        await this.page.send('Input.dispatchKeyEvent', {
            type: 'keyUp', modifiers: this.modifiers, windowsVirtualKeyCode: key.number, code: key.code, key: key.key,
        });
    }

    /** Presses keys together: `Control+A`. */
    async press(name, options) {
        const text = String(name);
        const keys = text.length > 1 ? text.split(/(?<=.)\+(?=.)/) : [text];
        for (const key of keys) if (!keyOf(key)) throw goError(`pressing key: cannot do key down: ${quote(key)} is not a valid key for layout "us"`);
        for (const key of keys.slice(0, -1)) await this.down(key);
        await this.down(keys.at(-1));
        const { delay } = optionsOf(options);
        if (delay) await this.page.connection.sleep(delay);
        for (const key of keys.reverse()) await this.up(key);
    }

    async type(text, options) {
        const { delay } = optionsOf(options);
        for (const character of String(text)) {
            const key = keyOf(character);
            if (!key || key.isUnknown) await this.insertText(character);
            else if (key.text !== '\r' && key.text !== (SHIFTED[key.text] ?? key.text).toLowerCase()) await this.pressShifted(key);
            else await this.press(character);
            if (delay) await this.page.connection.sleep(delay);
        }
    }

    /** A character that needs Shift, without Shift itself being pressed. */
    async pressShifted(key) {
        const event = { modifiers: this.modifiers, windowsVirtualKeyCode: key.number, code: key.code, key: key.key };
        await this.page.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event, text: key.text, unmodifiedText: key.text });
        await this.page.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    }

    async insertText(text) {
        await this.page.send('Input.insertText', { text: String(text) });
    }
}

class Mouse {
    constructor(page) {
        hide(this, { page, x: 0, y: 0, button: 'none' });
    }

    event(type, options) {
        return this.page.send('Input.dispatchMouseEvent', {
            type, x: this.x, y: this.y, button: this.button, modifiers: this.page.keyboard.modifiers, ...options,
        });
    }

    async move(x, y, options) {
        const steps = Math.max(1, Number(optionsOf(options).steps ?? 1));
        const [fromX, fromY] = [this.x, this.y];
        for (let step = 1; step <= steps; step += 1) {
            this.x = fromX + ((x - fromX) * step) / steps;
            this.y = fromY + ((y - fromY) * step) / steps;
            await this.event('mouseMoved');
        }
    }

    async down(options) {
        const { button = 'left', clickCount = 1 } = optionsOf(options);
        this.button = button;
        await this.event('mousePressed', { clickCount });
    }

    async up(options) {
        const { button = 'left', clickCount = 1 } = optionsOf(options);
        await this.event('mouseReleased', { button, clickCount });
        this.button = 'none';
    }

    async click(x, y, options) {
        const { button, clickCount = 1, delay = 0 } = optionsOf(options);
        await this.move(x, y);
        for (let count = 1; count <= clickCount; count += 1) {
            await this.down({ button, clickCount: count });
            if (delay) await this.page.connection.sleep(delay);
            await this.up({ button, clickCount: count });
        }
    }

    async dblClick(x, y, options) {
        await this.click(x, y, { ...optionsOf(options), clickCount: 2 });
    }
}

class Touchscreen {
    constructor(page) {
        hide(this, { page });
    }

    async tap(x, y) {
        const { modifiers } = this.page.keyboard;
        await this.page.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [{ x, y }], modifiers });
        await this.page.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [], modifiers });
    }
}
