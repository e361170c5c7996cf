/** Charts over the run's time. */

import type uPlot from "uplot";
import { clock } from "../format";
import { colour } from "../theme/theme";
import { Chart, type ChartOptions } from "./chart";
import type { Group, Span } from "./group";

const INCREMENTS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** The run's time: where its pieces start, how long they are, and where all of it ends. */
export class Timeline {
  readonly range: Span;

  constructor(
    readonly starts: number[],
    readonly lengths: number[],
    elapsed: number,
    readonly warmup: number,
    readonly group: Group,
    /** Whether something went wrong in the last piece. */
    trouble: boolean,
  ) {
    const last = starts.at(-1) ?? 0;
    const length = lengths.at(-1) ?? 1;
    const there = Math.min(elapsed - last, length);
    // Of a last second that was hardly there, as a drain leaves it, only trouble is worth a look.
    const sliver = starts.length > 1 && there < length / 4;
    const seen = sliver ? (trouble ? length : 0) : there;
    this.range = [0, last + seen];
  }

  /** How much of a piece there was: the last one may be cut short by the end of the run. */
  private covered(i: number): number {
    const length = this.lengths[i] ?? 1;
    const there = Math.min(length, this.range[1] - (this.starts[i] ?? 0));
    // A sliver at the end would read as a peak.
    return this.starts.length > 1 && there < length / 2 ? length : Math.max(there, 1e-3);
  }

  /** Counts by piece as numbers a second; none in the warm-up, which is in no figure. */
  rates(counts: number[]): (number | null)[] {
    return this.measured(counts.map((count, i) => count / this.covered(i)));
  }

  /** Values without those of the warm-up. */
  measured(values: number[]): (number | null)[] {
    const over = (i: number): number => (this.starts[i] ?? 0) + (this.lengths[i] ?? 1);
    return values.map((value, i) => (over(i) <= this.warmup ? null : value));
  }

  /** What was asked for, in the warm-up too. */
  asked(counts: (number | null)[]): number[] {
    return counts.map((count, i) => (count ?? 0) / this.covered(i));
  }

  /** How a piece reads. */
  read(i: number): string {
    const start = this.starts[i] ?? 0;
    const length = this.lengths[i] ?? 1;
    return length === 1 ? clock(start) : `${clock(start)} – ${clock(start + length)}`;
  }

  /** A chart over it. */
  chart(options: Omit<ChartOptions, "x" | "stepped" | "group">): Chart {
    return new Chart({
      ...options,
      stepped: true,
      group: this.group,
      x: {
        values: this.starts,
        range: this.range,
        increments: this.range[1] < 2 ? [0.01, 0.05, 0.1, 0.25, 0.5, 1] : INCREMENTS,
        tick: clock,
        read: (i) => this.read(i),
      },
      under: (plot) => this.shade(plot),
    });
  }

  /** Marks the warm-up, which is in no figure. */
  private shade(plot: uPlot): void {
    if (this.warmup <= 0) return;
    const { ctx, bbox } = plot;
    const end = Math.min(plot.valToPos(this.warmup, "x", true), bbox.left + bbox.width);
    if (end <= bbox.left) return;
    ctx.save();
    ctx.fillStyle = colour("panel");
    ctx.fillRect(bbox.left, bbox.top, end - bbox.left, bbox.height);
    ctx.fillStyle = colour("quiet");
    ctx.font = `${11 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textBaseline = "top";
    const inset = 6 * devicePixelRatio;
    if (end - bbox.left > ctx.measureText("warm-up").width + 2 * inset) {
      ctx.fillText("warm-up", bbox.left + inset, bbox.top + inset);
    }
    ctx.restore();
  }
}
