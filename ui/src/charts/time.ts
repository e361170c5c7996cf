/** Charts over the time of a run. */

import { clock } from "../format";
import type { Group, Span } from "./group";
import type { ChartOptions, Line, Stretch } from "./options";
import { place, type Placed } from "./redraw";

const INCREMENTS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** The intervals of a run: their starts, their lengths, and the end of the run. */
export class Intervals {
  readonly end: number;

  constructor(
    readonly starts: number[],
    readonly lengths: number[],
    elapsed: number,
    readonly warmup: number,
    /** Whether there were failures in the last interval. */
    trouble: boolean,
  ) {
    const last = starts.at(-1) ?? 0;
    const length = lengths.at(-1) ?? 1;
    const there = Math.min(elapsed - last, length);
    // A very short last interval, such as a drain, is shown only with failures.
    const sliver = starts.length > 1 && there < length / 4;
    this.end = last + (sliver ? (trouble ? length : 0) : there);
  }

  /** The duration of an interval: the end of the run may cut the last one short. */
  private covered(i: number): number {
    const length = this.lengths[i] ?? 1;
    const there = Math.min(length, this.end - (this.starts[i] ?? 0));
    // Scaled up, a very short one would look like a peak.
    return this.starts.length > 1 && there < length / 2 ? length : Math.max(there, 1e-3);
  }

  /** Counts per interval as rates; null in the warm-up, which no figure includes. */
  rates(counts: number[]): (number | null)[] {
    return this.measured(counts.map((count, i) => count / this.covered(i)));
  }

  /** Values without the warm-up. */
  measured(values: (number | null)[]): (number | null)[] {
    const over = (i: number): number => (this.starts[i] ?? 0) + (this.lengths[i] ?? 1);
    return values.map((value, i) => (over(i) <= this.warmup ? null : value));
  }

  /** The planned rate, including the warm-up. */
  asked(counts: (number | null)[]): number[] {
    return counts.map((count, i) => (count ?? 0) / this.covered(i));
  }

  /** The interval that contains an instant; null after the end. */
  at(instant: number): number | null {
    if (instant >= this.end) return null;
    let [low, high] = [0, this.starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.starts[middle] as number) <= instant) low = middle + 1;
      else high = middle;
    }
    return low > 0 ? low - 1 : null;
  }
}

/** A line over time: values of a run, and of the baseline run. */
export interface TimeLine extends Omit<Line, "values" | "ghost"> {
  /** One value per interval. */
  values: (number | null)[];
  /** The baseline's values, one per interval of its own. */
  behind?: (number | null)[] | undefined;
}

/** The options of a chart over time, apart from its lines. */
export type TimeOptions = Omit<ChartOptions, "x" | "stepped" | "group" | "lines" | "stretches" | "ghost"> & {
  lines: TimeLine[];
};

/** The time axis of a run's charts, with the baseline run. */
export class Timeline {
  readonly range: Span;
  private readonly starts: number[];
  private readonly lengths: number[];

  constructor(
    readonly intervals: Intervals,
    readonly group: Group,
    private readonly stages: Stretch[],
    private readonly behind?: { name: string; intervals: Intervals },
  ) {
    const other = behind?.intervals;
    const end = intervals.starts.length > 0 ? (intervals.starts.at(-1) ?? 0) + (intervals.lengths.at(-1) ?? 1) : 0;
    // The baseline's intervals after the end of this run.
    const later = other ? other.starts.findIndex((start) => start >= end) : -1;
    const from = later < 0 ? Infinity : later;
    this.starts = [...intervals.starts, ...(other?.starts.slice(from) ?? [])];
    this.lengths = [...intervals.lengths, ...(other?.lengths.slice(from) ?? [])];
    this.range = [0, Math.max(intervals.end, other?.end ?? 0)];
  }

  /** The intervals of the baseline run. */
  get other(): Intervals | undefined {
    return this.behind?.intervals;
  }

  /** The baseline's values on the intervals of this axis. */
  private ghost(values: (number | null)[]): (number | null)[] {
    const { other } = this;
    if (!other) return [];
    return this.starts.map((start, i) => {
      const middle = start + Math.min(this.lengths[i] ?? 1, this.range[1] - start) / 2;
      const at = other.at(middle);
      return at === null ? null : (values[at] ?? null);
    });
  }

  /** The text of an interval. */
  read(i: number): string {
    const start = this.starts[i] ?? 0;
    const length = this.lengths[i] ?? 1;
    return length <= 1 ? clock(start) : `${clock(start)} – ${clock(start + length)}`;
  }

  /** A chart over this axis. */
  chart(options: TimeOptions): Placed {
    const { intervals, behind } = this;
    const warmup: Stretch = { from: 0, to: intervals.warmup, text: "warm-up", shade: "warm-up" };
    return place({
      ...options,
      lines: options.lines.map(({ behind: other, ...line }) => ({
        ...line,
        ...(other && { ghost: this.ghost(other) }),
      })),
      ghost: behind?.name,
      stepped: true,
      group: this.group,
      x: {
        values: this.starts,
        ends: this.starts.map((start, i) => start + (this.lengths[i] ?? 1)),
        range: this.range,
        increments: this.range[1] < 2 ? [0.01, 0.05, 0.1, 0.25, 0.5, 1] : INCREMENTS,
        tick: clock,
        read: (i) => this.read(i),
      },
      stretches: intervals.warmup > 0 ? [warmup, ...this.stages] : this.stages,
    });
  }
}
