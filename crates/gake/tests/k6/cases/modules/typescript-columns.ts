const a: any = { f: 1 };
export default function (): void {
  const tries: (() => void)[] = [
    () => a.b.c,
    () => { console.log(`x ${a.b.c.d}`); },
    () => a.f(),
    () => a.b.c(),
    () => { throw new Error('e'); },
    () => nope,
    () => nope(1),
    () => a['x']['y'],
    () => { const { q } = a.b; },
    () => new a.f(),
    () => { a.b.c = 1; },
    () => { const b: Record<string, Array<number>> = JSON.parse(a.b.c); },
    () => JSON.parse('{'),
  ];
  for (const one of tries) { try { one(); } catch (e) { console.log((e as Error).stack!.split('\n').slice(0, 2).join('|').replace(/\(\d+\)$/, '')); } }
}
