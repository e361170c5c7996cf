/** Charts over the run's time. */

import { clock } from "../format";
import type { Group, Span } from "./group";
import type { ChartOptions, Line, Stretch } from "./options";
import { place, type Placed } from "./redraw";

const INCREMENTS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** Pieces of a run's time: where they start, how long they are, and where all of it ends. */
export class Pieces {
  readonly end: number;

  constructor(
    readonly starts: number[],
    readonly lengths: number[],
    elapsed: number,
    readonly warmup: number,
    /** Whether something went wrong in the last piece. */
    trouble: boolean,
  ) {
    const last = starts.at(-1) ?? 0;
    const length = lengths.at(-1) ?? 1;
    const there = Math.min(elapsed - last, length);
    // Of a last second that was hardly there, as a drain leaves it, only trouble is worth a look.
    const sliver = starts.length > 1 && there < length / 4;
    this.end = last + (sliver ? (trouble ? length : 0) : there);
  }

  /** How much of a piece there was: the last one may be cut short by the end of the run. */
  private covered(i: number): number {
    const length = this.lengths[i] ?? 1;
    const there = Math.min(length, this.end - (this.starts[i] ?? 0));
    // A sliver at the end would read as a peak.
    return this.starts.length > 1 && there < length / 2 ? length : Math.max(there, 1e-3);
  }

  /** Counts by piece as numbers a second; none in the warm-up, which is in no figure. */
  rates(counts: number[]): (number | null)[] {
    return this.measured(counts.map((count, i) => count / this.covered(i)));
  }

  /** Values without those of the warm-up. */
  measured(values: (number | null)[]): (number | null)[] {
    const over = (i: number): number => (this.starts[i] ?? 0) + (this.lengths[i] ?? 1);
    return values.map((value, i) => (over(i) <= this.warmup ? null : value));
  }

  /** What was asked for, in the warm-up too. */
  asked(counts: (number | null)[]): number[] {
    return counts.map((count, i) => (count ?? 0) / this.covered(i));
  }

  /** The piece that holds an instant; none beyond the end. */
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

/** A line over the time: values of a run, and how to take them from another one. */
export interface TimeLine extends Omit<Line, "values" | "ghost"> {
  /** One value for each piece. */
  values: (number | null)[];
  /** The same of the run behind, one for each of its pieces. */
  behind?: (number | null)[] | undefined;
}

/** What a chart over time needs beside its lines. */
export type TimeOptions = Omit<ChartOptions, "x" | "stepped" | "group" | "lines" | "stretches" | "ghost"> & {
  lines: TimeLine[];
};

/** The axis of a run's charts, with the run that lies behind. */
export class Timeline {
  readonly range: Span;
  private readonly starts: number[];
  private readonly lengths: number[];

  constructor(
    readonly pieces: Pieces,
    readonly group: Group,
    private readonly stages: Stretch[],
    private readonly behind?: { name: string; pieces: Pieces },
  ) {
    const other = behind?.pieces;
    const end = pieces.starts.length > 0 ? (pieces.starts.at(-1) ?? 0) + (pieces.lengths.at(-1) ?? 1) : 0;
    // What the run behind has after the end of this one.
    const later = other ? other.starts.findIndex((start) => start >= end) : -1;
    const from = later < 0 ? Infinity : later;
    this.starts = [...pieces.starts, ...(other?.starts.slice(from) ?? [])];
    this.lengths = [...pieces.lengths, ...(other?.lengths.slice(from) ?? [])];
    this.range = [0, Math.max(pieces.end, other?.end ?? 0)];
  }

  /** The pieces of the run behind. */
  get other(): Pieces | undefined {
    return this.behind?.pieces;
  }

  /** Values of the run behind on the pieces of this axis. */
  private ghost(values: (number | null)[]): (number | null)[] {
    const { other } = this;
    if (!other) return [];
    return this.starts.map((start, i) => {
      const middle = start + Math.min(this.lengths[i] ?? 1, this.range[1] - start) / 2;
      const at = other.at(middle);
      return at === null ? null : (values[at] ?? null);
    });
  }

  /** How a piece reads. */
  read(i: number): string {
    const start = this.starts[i] ?? 0;
    const length = this.lengths[i] ?? 1;
    return length <= 1 ? clock(start) : `${clock(start)} – ${clock(start + length)}`;
  }

  /** A chart over it. */
  chart(options: TimeOptions): Placed {
    const { pieces, behind } = this;
    const warmup: Stretch = { from: 0, to: pieces.warmup, text: "warm-up", shade: "warm-up" };
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
      stretches: pieces.warmup > 0 ? [warmup, ...this.stages] : this.stages,
    });
  }
}
