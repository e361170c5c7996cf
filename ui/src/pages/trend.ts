/** `gake history trend`: the figures of a target from run to run. */

import { themeButton } from "../charts/bar";
import { Chart } from "../charts/chart";
import { header } from "../charts/header";
import type { ChartOptions, Line } from "../charts/options";
import { el } from "../dom";
import { duration, durationTick, percent, rate, tick } from "../format";
import { table, type Column } from "../table";
import { section } from "./elements";

/** The data of the page. */
export interface TrendData {
  kind: "trend";
  gake: string;
  target: string;
  runs: Run[];
}

interface Run {
  id: number;
  started: string;
  commit: string;
  verdict: string;
  p50_ns: number | null;
  p99_ns: number | null;
  goodput: number | null;
  errors: number | null;
  /** The capacity and its 95 % interval. */
  capacity: [number, number, number] | null;
}

/** Draws the page. */
export function trend(root: HTMLElement, data: TrendData): void {
  document.title = `gake trend: ${data.target}`;
  const { runs } = data;
  const charts = [
    chart(runs, "Response time", "Percentiles of each run.", { tick: durationTick, read: duration, log: "offer" }, [
      { name: "p50", values: runs.map((run) => run.p50_ns), colour: "blue" },
      { name: "p99", values: runs.map((run) => run.p99_ns), colour: "blue-3" },
    ]),
    chart(runs, "Goodput", "Ok requests per second.", { tick, read: rate }, [
      { name: "goodput", values: runs.map((run) => run.goodput), colour: "green" },
    ]),
    chart(runs, "Capacity", "From each search, with its 95 % interval.", { tick, read: rate }, [
      { name: "capacity", values: runs.map((run) => run.capacity?.[0] ?? null), colour: "orange" },
      { name: "95 % from", values: runs.map((run) => run.capacity?.[1] ?? null), colour: "grey", dash: [4, 3] },
      { name: "to", values: runs.map((run) => run.capacity?.[2] ?? null), colour: "grey", dash: [4, 3] },
    ]),
  ].filter((made) => made !== null);
  root.append(
    header({ brand: "gake history trend", title: data.target }, themeButton()),
    charts.length > 0
      ? section("Over its runs", ...charts.map((made) => made.element))
      : el("p", { class: "empty" }, "The history has no run of this target."),
    section("Runs", table([...runs].reverse(), columns())),
    el("footer", {}, `gake ${data.gake}. Drag over a chart to zoom, double-click to reset.`),
  );
}

/** A chart over the runs; null when no run has a value. */
function chart(runs: Run[], title: string, note: string, y: ChartOptions["y"], lines: Line[]): Chart | null {
  if (!lines.some((line) => line.values.some((value) => value !== null))) return null;
  const last = Math.max(runs.length - 1, 1);
  const name = (i: number): string => runs[i]?.commit || `#${runs[i]?.id ?? ""}`;
  return new Chart({
    title,
    note,
    x: {
      values: runs.map((_, i) => i),
      range: [-0.02 * last, last * 1.02],
      increments: [1, 2, 5, 10, 20, 50, 100, 200, 500],
      tick: (at) => (Number.isInteger(at) && runs[at] ? name(at) : ""),
      read: (i) => `#${runs[i]?.id ?? ""} ${runs[i]?.commit ?? ""} ${runs[i]?.started ?? ""}`,
    },
    y,
    lines: lines.map((line) => ({ ...line, span: true, marks: 6 })),
    height: 260,
  });
}

function columns(): Column<Run>[] {
  const time = (ns: number | null): string => (ns === null ? "–" : duration(ns));
  return [
    { name: "Run", show: (run) => `#${run.id}`, key: (run) => run.id },
    { name: "started (UTC)", show: (run) => run.started },
    { name: "commit", show: (run) => run.commit },
    { name: "p50", show: (run) => time(run.p50_ns), key: (run) => run.p50_ns ?? 0, number: true },
    { name: "p99", show: (run) => time(run.p99_ns), key: (run) => run.p99_ns ?? 0, number: true },
    { name: "errors", show: (run) => (run.errors === null ? "–" : percent(run.errors)), number: true },
    { name: "goodput", show: (run) => (run.goodput === null ? "–" : rate(run.goodput)), number: true },
    { name: "capacity", show: (run) => (run.capacity === null ? "–" : rate(run.capacity[0])), number: true },
    { name: "verdict", show: (run) => run.verdict },
  ];
}
