// Where an exception is thrown, by its kind of expression: the line and column of its first frames.
import { check, fail, group } from 'k6';

const u = undefined, k = 1, f = (x) => x;
const o = { n: 5, f() { return {}; }, p: { n: 3 }, list: [{}], set wrong(v) { u.set; }, get wrong() { return u.get; } };
function* generated() { yield u.b; }

const CASES = [
    () => u.b, () => u.b.c, () => o.x.y, () => o . x . y, () => o.x[0], () => o.x['text'], () => o.x[k + 1],
    () => o[k].x, () => o?.x.y, () => o.p?.q.r, () => (o?.x).y, function () { return this.x.y; }, () => import.meta.x.y,
    () => o.x.y(), () => o.x.y(u.b), () => u.b(), () => o.x(), () => o.x(o.n, 3), () => o.p?.n(),
    () => o.f().x.y, () => o.f()(), () => f(1)(2), () => u(), () => (0, o.n)(), () => o.n`text`,
    () => new u(), () => new o.n, () => new o.x.y(), () => new (u.b)(), () => new o.p.n(u.b),
    () => { const { a } = u; }, () => { const { a } = o.x; }, () => { const { x: { b } } = o; },
    () => { const [a] = o.x; }, () => { let { a = 1, b } = o.x, c; }, () => { [o.n] = u; }, () => { ({ a: o.n } = u); },
    () => [...u], () => [1, ...o.n], () => f(1, ...o.n), () => ({ ...u.x }), () => ({ [u.b]: 1 }),
    () => 'a' in o.x, () => o instanceof o.n, () => Symbol() + '', () => 1 + u.b * 2, () => `a ${u.b}`,
    () => { u.b = 1; }, () => { o.x.y = o.f(); }, () => { o.x[k] = 1; }, () => { o.x['s'] = 1; }, () => { o.x.y += 1; },
    () => { o.x[k] += 1; }, () => { o.x.y++; }, () => { --o.x.y; }, () => delete o.x.y, () => delete o.x[k],
    () => typeof u.b, () => !u.b, () => u.b ? 1 : 2, () => o && u.b, () => u ?? u.b, () => f(f(u.b)),
    () => { for (const q of o.n) { } }, () => { for (const { a } of [u]) { } }, () => { while (u.b) { } },
    () => { throw new Error('x'); }, () => { throw Error('x'); }, () => new Array(-1), () => new Map(5),
    () => [1].map((q) => q.x.y), () => o.list.map(({ a }) => a.b), () => (({ a }) => a)(u), () => [...generated()],
    () => class extends u { }, () => new (class { constructor() { this.x.y(); } })(), () => o.wrong, () => { o.wrong = 1; },
    () => o
        .x
        .y,
    () => o.f()
        .x.y.z(
            u.b),
    () => fail('x'), () => group('g', () => u.b), () => check(1, { a: (r) => r.x.y }), () => 'é'.x.y,
];

export default function () {
    for (const run of CASES) {
        try {
            console.log('nothing', run());
        } catch (error) {
            const [text, ...frames] = error.stack.split('\n');
            const places = frames.slice(0, 3).filter((frame) => /^\tat /.test(frame)).map((frame) => {
                const [, name, line, column] = /^\tat (?:(.*) \()?(?:file:.*:(\d+):(\d+)|native)/.exec(frame) ?? [frame];
                return line ? `${name ?? ''} ${line}, ${column}` : frame.trim();
            });
            console.log(text, places.join('; '));
        }
    }
}
