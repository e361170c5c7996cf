/** The distribution of latencies: a histogram and the percentile curves. */

import { count, duration, durationTick, tick } from "../format";
import type { Mark } from "./options";
import { place, type Placed } from "./redraw";
import { rounds } from "./scales";

/** Points of a curve per nine, as in gake-report. */
const CURVE_STEPS = 16;

/** Samples that must lie beyond a percentile to trust it. */
const BEYOND = 10;

/** Counts of response and service times between edges. */
export interface Histogram {
  edges: number[];
  response: number[];
  service: number[];
}

/** A histogram of both, in front of the baseline's, which is scaled to the same number of requests. */
export function histogram(data: Histogram, behind: { name: string; data: Histogram; scale: number } | undefined, marks: Mark[]): Placed {
  // All edges belong to one scale.
  const all = [...new Set([...data.edges, ...(behind?.data.edges ?? [])])].sort((a, b) => a - b);
  const edges = all.map((edge) => Math.max(edge, 512));
  const [first, last] = [edges[0] ?? 512, edges.at(-1) ?? 1024];
  const placed = (of: Histogram, counts: number[], scale = 1): (number | null)[] => {
    const at = new Map(of.edges.map((edge, i) => [edge, (counts[i] ?? 0) * scale]));
    return all.slice(0, -1).map((edge) => at.get(edge) ?? 0);
  };
  const ghost = (counts: number[] | undefined): (number | null)[] | undefined =>
    behind && counts && placed(behind.data, counts, behind.scale);
  return place({
    title: "Distribution of latency",
    note: "Requests by latency, over the whole run; the scale is logarithmic.",
    x: {
      values: edges.slice(0, -1),
      range: [first, last],
      log: true,
      splits: rounds(first, last, 9),
      tick: durationTick,
      read: (i) => `${i === 0 && all[0] === 0 ? "0" : duration(edges[i] ?? 0)} – ${duration(edges[i + 1] ?? 0)}`,
    },
    y: { tick, read: count, log: "offer" },
    lines: [
      { name: "response", values: placed(data, data.response), ghost: ghost(behind?.data.response), colour: "blue", fill: 0.22 },
      { name: "service", values: placed(data, data.service), colour: "orange", fill: 0.1 },
    ],
    ghost: behind?.name,
    marks,
    stepped: true,
    height: 260,
  });
}

const COLOURS: Record<string, string> = { response: "blue", service: "orange", lateness: "purple" };

/** Microseconds at the quantiles 1 - 10^(-n/16). */
interface Curve {
  metric: string;
  count: number;
  values: number[];
}

/** The percentile curves over an axis of 1/(1-p), on which each nine has the same width. */
export function percentiles(curves: Curve[], behind: { name: string; curves: Curve[] } | undefined, marks: Mark[]): Placed {
  const length = Math.max(2, ...[...curves, ...(behind?.curves ?? [])].map((curve) => curve.values.length));
  const x = Array.from({ length }, (_, n) => 10 ** (n / CURVE_STEPS));
  const last = x.at(-1) ?? 10;
  const samples = Math.max(...curves.map((curve) => curve.count));
  const values = curves.flatMap((curve) => curve.values).filter((value) => value > 0);
  const spread = Math.max(...values) / Math.min(...values);
  const line = (curve: Curve | undefined): (number | null)[] | undefined =>
    curve &&
    x.map((_, n) => {
      const value = curve.values[n];
      return value === undefined ? null : value * 1e3;
    });
  const beyond = samples / BEYOND;
  return place({
    title: "Percentiles of latency",
    note: "Each step to the right is another nine. Shaded: fewer than 10 samples beyond.",
    x: {
      values: x,
      range: [1, last],
      log: true,
      splits: [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((split) => split <= last),
      tick: (at) => (at <= 1 ? "min" : percentile(at)),
      read: (_i, at) => (at <= 1 ? "min" : percentile(at)),
    },
    y: { tick: durationTick, read: duration, log: spread > 30 ? "start" : "offer" },
    lines: curves.map((curve) => ({
      name: curve.metric,
      values: line(curve) ?? [],
      ghost: curve.metric === "response" ? line(behind?.curves.find((other) => other.metric === "response")) : undefined,
      colour: COLOURS[curve.metric] ?? "grey",
    })),
    ghost: behind?.name,
    marks,
    stretches: beyond < last ? [{ from: Math.max(beyond, 1), to: last, text: "", shade: "warm-up" }] : [],
    height: 260,
  });
}

/** 1/(1-p) as a percentile: `p99.9`, with as few digits as distinguish it from the next. */
function percentile(x: number): string {
  const digits = Math.max(0, Math.ceil(Math.log10(x) - 2 + 1e-9) + (Number.isInteger(Math.log10(x)) ? 0 : 1));
  const text = ((1 - 1 / x) * 100).toFixed(Math.min(digits, 6));
  return `p${text.includes(".") ? text.replace(/\.?0+$/, "") : text}`;
}
