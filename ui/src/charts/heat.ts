/** Latencies over time as a heat map: a column per interval, a cell per range of latency. */

import type uPlot from "uplot";
import { el } from "../dom";
import { count, duration, durationTick, rate } from "../format";
import { colour } from "../theme/theme";
import type { Mark } from "./options";
import type { Placed } from "./redraw";
import type { Timeline } from "./time";

/** Colours of the scale. */
const STOPS = 5;

/** The heat map; each column has alternating distances to the next cell and counts. */
export function heat(
  time: Timeline,
  texts: { title: string; note: string },
  gaps: number[][],
  edges: number[],
  marks: Mark[],
): Placed {
  const { starts, lengths } = time.intervals;
  const columns = gaps.map(cellsOf);
  const most = columns.reduce(
    (highest, cells, i) =>
      cells.reduce((high, n, k) => (k % 2 ? Math.max(high, n / (lengths[i] ?? 1)) : high), highest),
    0,
  );
  let lowest = Infinity;
  for (const cells of columns) if (cells.length) lowest = Math.min(lowest, cells[0] as number);
  // On a logarithmic scale the first cell has no lower edge.
  const edge = (cell: number): number => (cell === 0 ? 512 : (edges[cell] ?? 1));
  const span = [edge(Number.isFinite(lowest) ? lowest : 0), edges.at(-1) ?? 1024] as const;

  const draw = (plot: uPlot): void => {
    const { ctx, bbox } = plot;
    const scale = palette();
    const [from, to] = [plot.scales["x"]?.min ?? 0, plot.scales["x"]?.max ?? 0];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    columns.forEach((cells, i) => {
      const start = starts[i] ?? 0;
      const length = lengths[i] ?? 1;
      if (start + length < from || start > to) return;
      const left = Math.round(plot.valToPos(start, "x", true));
      const right = Math.max(Math.round(plot.valToPos(start + length, "x", true)), left + 1);
      for (let k = 0; k + 1 < cells.length; k += 2) {
        const cell = cells[k] as number;
        const bottom = Math.round(plot.valToPos(edge(cell), "y", true));
        const top = Math.round(plot.valToPos(edge(cell + 1), "y", true));
        const share = Math.log1p((cells[k + 1] as number) / length) / Math.log1p(most);
        ctx.fillStyle = scale[Math.min(Math.floor(share * scale.length), scale.length - 1)] ?? "";
        ctx.fillRect(left, top, right - left, Math.max(bottom - top, 1));
      }
    });
    ctx.restore();
  };

  const placed = time.chart({
    ...texts,
    y: { tick: durationTick, read: duration, range: span, always: "log" },
    lines: [],
    marks,
    height: 260,
    cells: draw,
    tip: (i, y) => {
      const cells = columns[i] ?? [];
      for (let k = 0; k + 1 < cells.length; k += 2) {
        const cell = cells[k] as number;
        if (y < edge(cell) || y >= edge(cell + 1)) continue;
        const n = cells[k + 1] as number;
        const all = cells.reduce((sum, value, at) => (at % 2 ? sum + value : sum), 0);
        const low = cell === 0 ? "0" : duration(edge(cell));
        return [
          `${time.read(i)}, ${low} – ${duration(edge(cell + 1))}`,
          `${count(n)} of ${count(all)} requests`,
        ];
      }
      return null;
    },
  });
  const text = (text: string): HTMLElement => el("span", { class: "ramp-text" }, text);
  placed.chart.explain(text("1/s"), el("i", { class: "ramp" }), text(`${rate(most)} in a cell`));
  return placed;
}

/** Alternating cells and counts. */
function cellsOf(gaps: number[]): number[] {
  let cell = 0;
  return gaps.map((value, k) => (k % 2 ? value : (cell += value)));
}

/** The colours of the scale, in ascending order. */
function palette(): string[] {
  const stops = Array.from({ length: STOPS }, (_, i) => channels(colour(`heat-${i}`)));
  const steps = 8;
  const colours: string[] = [];
  for (let i = 0; i + 1 < STOPS; i++) {
    for (let step = 0; step < steps; step++) {
      const mixed = [0, 1, 2].map((channel) => {
        const [a, b] = [stops[i]?.[channel] ?? 0, stops[i + 1]?.[channel] ?? 0];
        return Math.round(a + ((b - a) * step) / (steps - 1));
      });
      colours.push(`rgb(${mixed.join(" ")})`);
    }
  }
  return colours;
}

/** Red, green and blue of #rrggbb. */
function channels(hex: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}
