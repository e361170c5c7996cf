/** The content of a chart. */

import type uPlot from "uplot";
import type { Group, Span } from "./group";

/** One line. */
export interface Line {
  name: string;
  /** One value per x; null is a gap. */
  values: (number | null)[];
  /** The values of the baseline run, drawn faint. */
  ghost?: (number | null)[] | undefined;
  /** A colour name of the theme. */
  colour: string;
  /** The opacity of the area below it, 0 to 1. */
  fill?: number;
  width?: number;
  dash?: number[];
  /** Whether it is drawn across gaps. */
  span?: boolean;
  /** The size of its points when it has no line. */
  points?: number;
  /** The size of its points in addition to the line. */
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
  /** The position on the y or x axis. */
  at: number;
  axis: "x" | "y";
  text: string;
  met: boolean;
}

/** A named, shaded interval of the x axis. */
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
    /** The end of each step, if there may be gaps between them. */
    ends?: number[];
    range: Span;
    log?: boolean;
    /** Ticks: uPlot's increments and their format. */
    increments?: number[];
    splits?: number[];
    tick: (x: number) => string;
    /** The text for the position of the cursor. */
    read: (index: number, x: number) => string;
  };
  y: {
    tick: (value: number) => string;
    read: (value: number) => string;
    /** Whether a logarithmic scale is offered, or initial. */
    log?: "offer" | "start";
    /** The only scale that makes sense. */
    always?: "log";
    /** A fixed range. */
    range?: Span;
    /** The smallest maximum of a linear scale. */
    top?: number;
  };
  lines: Line[];
  /** The name of the baseline run, if lines have a ghost. */
  ghost?: string | undefined;
  bands?: Band[];
  marks?: Mark[] | undefined;
  stretches?: Stretch[];
  /** Whether each value covers the interval up to the next x. */
  stepped?: boolean;
  group?: Group;
  height?: number;
  /** A small multiple: no legend, few ticks. */
  small?: boolean;
  /** Draws below the grid. */
  under?: (plot: uPlot) => void;
  /** Draws between grid and lines. */
  cells?: (plot: uPlot) => void;
  /** A tooltip, from the x index and the y under the pointer. */
  tip?: (index: number, y: number) => string[] | null;
}
