/** Percentiles over time, each in a colour of its own, with the bands between them. */

import { duration, durationTick } from "../format";
import type { Mark } from "./options";
import type { Placed } from "./redraw";
import type { Timeline } from "./time";

/** With a maximum this far above the medians, a linear scale hides them. */
const SPREAD = 30;

/** The colours of p50, p90 and p99. */
const COLOURS = ["blue", "orange", "purple"] as const;

/** p50, p90, p99 and max over time, in microseconds. */
export type Percentiles = (number | null)[][];

/** Microseconds as nanoseconds. */
export function nanos(values: (number | null)[] | undefined): (number | null)[] {
  return (values ?? []).map((value) => (value === null ? null : value * 1e3));
}

/** A chart of p50, p90, p99 and max. */
export function bands(
  time: Timeline,
  texts: { title: string; note: string },
  values: Percentiles,
  behind: Percentiles | undefined,
  marks: Mark[],
  height: number,
): Placed {
  const [p50, p90, p99, max] = [0, 1, 2, 3].map((i) => nanos(values[i]));
  const other = (i: number): (number | null)[] | undefined => behind && nanos(behind[i]);
  const seen = (p50 ?? []).filter((value) => value !== null && value > 0) as number[];
  const low = seen.reduce((least, value) => Math.min(least, value), Infinity);
  const high = (max ?? []).reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  return time.chart({
    ...texts,
    y: { tick: durationTick, read: duration, log: high / low > SPREAD ? "start" : "offer" },
    // The legend reads from the fastest to the slowest.
    lines: [
      { name: "p50", values: p50 ?? [], behind: other(0), colour: COLOURS[0], width: 2 },
      { name: "p90", values: p90 ?? [], colour: COLOURS[1], width: 1.5 },
      { name: "p99", values: p99 ?? [], behind: other(2), colour: COLOURS[2], width: 1.25 },
      { name: "max", values: max ?? [], colour: "grey", width: 1 },
    ],
    bands: [
      { upper: 1, lower: 0, colour: COLOURS[1], fill: 0.16 },
      { upper: 2, lower: 1, colour: COLOURS[2], fill: 0.14 },
      { upper: 3, lower: 2, colour: "grey", fill: 0.12 },
    ],
    marks,
    height,
  });
}
