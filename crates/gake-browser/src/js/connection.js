// The connection of an iteration: commands, events, waits and time limits.

const goError = (message) => {
    try {
        native.fail(message);
    } catch (error) {
        return error;
    }
};
const messageOf = (error) => String(error?.message ?? error);
/** An error with what was attempted before its reason. */
const because = (what, error) => goError(`${what}: ${messageOf(error)}`);
const quote = (text) => JSON.stringify(String(text));
const nothing = () => {};

class TimeoutError {
    constructor(ms) {
        this.message = `timed out after ${goDuration(ms)}`;
    }
}

/** A duration as Go writes it. */
const goDuration = (ms) => {
    if (ms < 1000) return `${ms}ms`;
    const minutes = Math.floor(ms / 60000);
    const seconds = (ms % 60000) / 1000;
    return minutes ? `${minutes}m${seconds}s` : `${seconds}s`;
};

class Connection {
    constructor() {
        this.commands = new Map();
        this.sessions = new Map();
        this.timers = new Set();
        this.conditions = new Set();
        this.onRootEvent = nothing;
        this.waiting = 0;
        this.isPumping = false;
        this.isClosed = false;
    }

    /** Sends a command; a promise of its result. */
    send(session, method, params = {}) {
        return this.wait((resolve, reject) => {
            const id = native.send(session, method, JSON.stringify(params));
            this.commands.set(id, { resolve, reject });
            return () => this.commands.delete(id);
        });
    }

    /** Resolves when `check` returns something truthy, which is looked at after each event. */
    until(check, ms) {
        return this.wait((resolve, reject) => {
            const condition = { check, resolve, reject };
            this.conditions.add(condition);
            this.examine(condition);
            return () => this.conditions.delete(condition);
        }, ms);
    }

    sleep(ms) {
        return this.wait(nothing, ms).catch(nothing);
    }

    /** A promise that is rejected after `ms`, unless `promise` settles before. */
    limit(promise, ms) {
        return this.wait((resolve, reject) => {
            promise.then(resolve, reject);
        }, ms);
    }

    /**
     * A promise that events settle. While none is pending, the wait for messages is idle, so that
     * an iteration can end; handlers of events run as long as anything else goes on.
     */
    wait(begin, ms) {
        return new Promise((resolve, reject) => {
            let cleanUp = nothing;
            let isSettled = false;
            let timer;
            const settle = (how) => (value) => {
                if (isSettled) return;
                isSettled = true;
                this.waiting -= 1;
                if (timer) this.timers.delete(timer);
                cleanUp?.();
                if (this.waiting === 0 && this.isReceiving) native.idle(true);
                how(value);
            };
            this.waiting += 1;
            if (this.isReceiving) native.idle(false);
            if (ms !== undefined && ms !== Infinity) {
                timer = { at: native.now() + ms, fire: () => settle(reject)(new TimeoutError(ms)) };
                this.timers.add(timer);
            }
            try {
                cleanUp = begin(settle(resolve), settle(reject)) ?? nothing;
                if (isSettled) cleanUp();
            } catch (error) {
                settle(reject)(error);
            }
            if (timer && this.isPumping && timer.at < this.wakesAt) native.wake();
            this.pump();
        });
    }

    async pump() {
        if (this.isPumping) return;
        this.isPumping = true;
        try {
            for (;;) {
                this.wakesAt = Infinity;
                for (const timer of this.timers) this.wakesAt = Math.min(this.wakesAt, timer.at);
                const pause = Math.max(0, Math.min(this.wakesAt - native.now(), 3_600_000));
                const received = native.receive(pause);
                this.isReceiving = true;
                native.idle(this.waiting === 0);
                const messages = await received;
                this.isReceiving = false;
                native.idle(false);
                for (const message of messages) this.dispatch(message);
                const now = native.now();
                for (const timer of [...this.timers]) if (timer.at <= now) timer.fire();
                // Promises that were settled may begin the next wait.
                await null;
            }
        } catch (error) {
            this.isClosed = true;
            for (const { reject } of [...this.commands.values(), ...this.conditions]) reject(error);
        } finally {
            this.isPumping = false;
            this.isReceiving = false;
        }
    }

    dispatch(message) {
        const command = this.commands.get(message.id);
        if (command) {
            this.commands.delete(message.id);
            if (message.error) command.reject(goError(`${message.error.message} (${message.error.code})`));
            else command.resolve(message.result);
        } else if (message.method) {
            const listen = this.sessions.get(message.sessionId);
            if (listen) listen(message.method, message.params ?? {});
            else this.onRootEvent(message.method, message.params ?? {});
        }
        for (const condition of [...this.conditions]) this.examine(condition);
    }

    examine(condition) {
        try {
            const value = condition.check();
            if (value) condition.resolve(value);
        } catch (error) {
            condition.reject(error);
        }
    }
}
