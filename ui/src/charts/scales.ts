/** Scales and their ticks. */

import type { ChartOptions, Mark } from "./options";

/** A bound this far above the values is drawn at the edge instead of extending the axis. */
const FAR = 1.8;

/** The same on a logarithmic scale. */
const FAR_LOG = 100;

/** Round values for a logarithmic scale, at most about `most`. */
export function rounds(from: number, to: number, most: number): number[] {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const values: number[] = [];
    for (let decade = 10 ** Math.floor(Math.log10(from)); decade <= to * 1.001; decade *= 10) {
      for (const step of steps) {
        const value = step * decade;
        if (value >= from * 0.999 && value <= to * 1.001) values.push(value);
      }
    }
    if (values.length <= most || steps.length === 1) return values;
  }
  return [];
}

/** The next higher or lower 1, 2 or 5 times a power of ten. */
function round(value: number, way: 1 | -1): number {
  const decade = 10 ** Math.floor(Math.log10(value) + 1e-9);
  const steps = [1, 2, 5, 10].map((step) => step * decade);
  if (way > 0) return steps.find((step) => step >= value * (1 - 1e-9)) ?? decade * 10;
  return steps.filter((step) => step <= value * (1 + 1e-9)).at(-1) ?? decade;
}

/** The range of the y axis: that of the values and of the bounds near them. */
export function range(
  y: ChartOptions["y"],
  marks: Mark[],
  log: boolean,
  min: number | null,
  max: number | null,
): [number, number] {
  if (y.range) return [...y.range];
  const bounds = marks.filter((mark) => mark.axis === "y" && mark.at > 0).map((mark) => mark.at);
  if (log) {
    if (!min || !max || min <= 0) return [1, 10];
    const [low, high] = [min, max];
    const near = bounds.filter((at) => at > low / FAR_LOG && at < high * FAR_LOG);
    const from = round(Math.min(low, ...near), -1);
    const to = round(Math.max(high, ...near), 1);
    return [from, to > from * 9.99 ? to : from * 10];
  }
  const seen = Math.max(max ?? 0, 0);
  const near = bounds.filter((at) => at < seen * FAR);
  const top = Math.max(seen, y.top ?? 0, ...near);
  return [0, top > 0 ? top * 1.08 : 1];
}
