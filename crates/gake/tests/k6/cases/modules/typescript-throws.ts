interface Nothing {
  a: string;
}

function inner(
  value: Nothing,
): never {
  throw new Error(`on line ${value.a}`);
}

export default function (): void {
  inner({ a: 'eight' });
}
