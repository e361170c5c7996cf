/** The distribution of latencies: a histogram, and the curve of percentiles. */

import type uPlot from "uplot";
import { count, duration, durationTick, tick } from "../format";
import { colour } from "../theme/theme";
import { Chart, rounds } from "./chart";

/** Points of a curve for each nine; the same as in gake-report. */
const CURVE_STEPS = 16;

/** Samples that must lie beyond a percentile before it is believed. */
const BEYOND = 10;

/** Edges and counts of response and service time. */
export function histogram(data: { edges: number[]; response: number[]; service: number[] }): Chart {
  const edges = data.edges.map((edge) => Math.max(edge, 512));
  const [first, last] = [edges[0] ?? 512, edges.at(-1) ?? 1024];
  return new Chart({
    title: "Distribution of latency",
    note: "Requests by latency, over the whole run; the scale is logarithmic.",
    x: {
      values: edges.slice(0, -1),
      range: [first, last],
      log: true,
      splits: rounds(first, last, 9),
      tick: durationTick,
      read: (i) => `${i === 0 && data.edges[0] === 0 ? "0" : duration(edges[i] ?? 0)} – ${duration(edges[i + 1] ?? 0)}`,
    },
    y: { tick, read: count, log: "offer" },
    lines: [
      { name: "response", values: data.response, colour: "blue", fill: 0.22 },
      { name: "service", values: data.service, colour: "orange", fill: 0.1 },
    ],
    stepped: true,
    height: 260,
  });
}

const COLOURS: Record<string, string> = { response: "blue", service: "orange", lateness: "purple" };

/** The curves of percentiles, with an axis of 1/(1-p): each nine has the same width. */
export function percentiles(curves: { metric: string; count: number; values: number[] }[]): Chart {
  const length = Math.max(2, ...curves.map((curve) => curve.values.length));
  const x = Array.from({ length }, (_, n) => 10 ** (n / CURVE_STEPS));
  const last = x.at(-1) ?? 10;
  const samples = Math.max(...curves.map((curve) => curve.count));
  const values = curves.flatMap((curve) => curve.values).filter((value) => value > 0);
  const spread = Math.max(...values) / Math.min(...values);
  return new Chart({
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
      values: x.map((_, n) => {
        const value = curve.values[n];
        return value === undefined ? null : value * 1e3;
      }),
      colour: COLOURS[curve.metric] ?? "grey",
    })),
    height: 260,
    under: (plot) => shade(plot, samples / BEYOND),
  });
}

/** 1/(1-p) as a percentile: `p99.9`, with no more digits than tell it from the next. */
function percentile(x: number): string {
  const digits = Math.max(0, Math.ceil(Math.log10(x) - 2 + 1e-9) + (Number.isInteger(Math.log10(x)) ? 0 : 1));
  const text = ((1 - 1 / x) * 100).toFixed(Math.min(digits, 6));
  return `p${text.includes(".") ? text.replace(/\.?0+$/, "") : text}`;
}

function shade(plot: uPlot, from: number): void {
  const { ctx, bbox } = plot;
  const right = bbox.left + bbox.width;
  const left = Math.max(plot.valToPos(Math.max(from, 1), "x", true), bbox.left);
  if (left >= right) return;
  ctx.save();
  ctx.fillStyle = colour("panel");
  ctx.fillRect(left, bbox.top, right - left, bbox.height);
  ctx.restore();
}
