/** What a chart shows. */

import type uPlot from "uplot";
import type { Group, Span } from "./group";

/** One series. */
export interface Line {
  name: string;
  /** One value for each x; null for a gap. */
  values: (number | null)[];
  /** The same of the run behind, drawn faint. */
  ghost?: (number | null)[] | undefined;
  /** The name of a colour of the theme. */
  colour: string;
  /** The share of the colour that fills the area below, 0 to 1. */
  fill?: number;
  width?: number;
  dash?: number[];
  /** Whether its points are joined over missing ones. */
  span?: boolean;
  /** The size of its points, when they stand alone. */
  points?: number;
  /** The size of its points beside the line. */
  marks?: number;
}

/** An area between two lines, by their index. */
export interface Band {
  upper: number;
  lower: number;
  colour: string;
  fill: number;
}

/** The bound of an objective: a line across the chart. */
export interface Mark {
  /** On the y axis, or on the x axis. */
  at: number;
  axis: "x" | "y";
  text: string;
  met: boolean;
}

/** A piece of the x axis with a name, shaded. */
export interface Stretch {
  from: number;
  to: number;
  text: string;
  shade: "warm-up" | "even" | "odd";
}

export interface ChartOptions {
  title: string;
  /** What is counted, from when to when. */
  note?: string;
  x: {
    values: number[];
    /** Where each ends, of steps between which there may be nothing. */
    ends?: number[];
    range: Span;
    log?: boolean;
    /** Ticks: uPlot's increments, and how one reads. */
    increments?: number[];
    splits?: number[];
    tick: (x: number) => string;
    /** How the place of the cursor reads. */
    read: (index: number, x: number) => string;
  };
  y: {
    tick: (value: number) => string;
    read: (value: number) => string;
    /** Whether a logarithmic scale makes sense, and is what to begin with. */
    log?: "offer" | "start";
    /** Only this scale makes sense. */
    always?: "log";
    /** A fixed range. */
    range?: Span;
    /** The least top of a linear scale. */
    top?: number;
  };
  lines: Line[];
  /** The run behind, when lines have a ghost. */
  ghost?: string | undefined;
  bands?: Band[];
  marks?: Mark[] | undefined;
  stretches?: Stretch[];
  /** Each x holds up to the next, as with what is counted in a second; else x to x. */
  stepped?: boolean;
  group?: Group;
  height?: number;
  /** One among many: no legend, few ticks. */
  small?: boolean;
  /** Draws under the grid. */
  under?: (plot: uPlot) => void;
  /** Draws between grid and lines. */
  cells?: (plot: uPlot) => void;
  /** A text beside the cursor, from the x index and the y under the pointer. */
  tip?: (index: number, y: number) => string[] | null;
}
