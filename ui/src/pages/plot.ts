/** `vegeta plot`: latency over the time since the start of the attack, a line per result. */

import { Chart } from "../charts/chart";
import type { Line } from "../charts/options";
import { themeButton } from "../charts/bar";
import { header } from "../charts/header";
import { el } from "../dom";
import { clock, durationTick, duration } from "../format";

/** The data of the page. */
export interface PlotData {
  kind: "plot";
  title: string;
  series: {
    /** The attack's name, and OK or ERROR. */
    name: string;
    /** Seconds since the start. */
    s: number[];
    /** Milliseconds. */
    ms: number[];
  }[];
}

const GOOD = ["blue", "green", "purple", "sky", "grey"];
const BAD = ["red", "orange", "yellow"];

/** Draws the page. */
export function plot(root: HTMLElement, data: PlotData): void {
  document.title = data.title;
  const x = [...new Set(data.series.flatMap((series) => series.s))].sort((a, b) => a - b);
  const place = new Map(x.map((at, i) => [at, i]));
  const used = { good: 0, bad: 0 };
  const lines = data.series.map((series): Line => {
    const values: (number | null)[] = new Array<null>(x.length).fill(null);
    series.s.forEach((at, i) => {
      values[place.get(at) ?? 0] = (series.ms[i] ?? 0) * 1e6;
    });
    const bad = series.name.endsWith("ERROR");
    const colours = bad ? BAD : GOOD;
    const colour = colours[(bad ? used.bad++ : used.good++) % colours.length] ?? "blue";
    return { name: series.name, values, colour, width: 1, span: true };
  });
  root.append(header({ brand: "gake plot", title: data.title }, themeButton()));
  if (x.length === 0) {
    root.append(el("p", { class: "empty" }, "There is no result to plot."));
    return;
  }
  const [first, last] = [x[0] ?? 0, x.at(-1) ?? 0];
  const chart = new Chart({
    title: "Latency",
    note: "Of each request, over the time since the start of the attack.",
    x: {
      values: x,
      range: first < last ? [first, last] : [first - 0.5, first + 0.5],
      tick: (at) => clock(Math.max(at, 0)),
      read: (_index, at) => `${at.toFixed(3)} s`,
    },
    y: { tick: durationTick, read: duration, log: "offer" },
    lines,
    height: 480,
  });
  root.append(el("section", {}, chart.element));
}
