/** Endpoints: a table and small charts, with a filter. */

import { nanos } from "../charts/bands";
import { faded } from "../charts/draw";
import type { Group } from "../charts/group";
import { Intervals, Timeline } from "../charts/time";
import { el } from "../dom";
import { count, duration, durationTick, percent } from "../format";
import { recall, remember } from "../memory";
import { listing, type Column } from "../table";
import { change } from "./elements";
import type { Label, LabelSeries, RunData } from "./run-data";
import { marksOf } from "./run-marks";
import { quantile } from "./run-top";

/** Small charts that are drawn initially. */
const SHOWN = 12;

/** With fewer endpoints there is no filter. */
const FILTER = 6;

/** The share of failures in an endpoint's table row and chart. */
function share(label: Label): number {
  return label.sent > 0 ? label.failed / label.sent : 0;
}

/** The endpoints, in the reader's order. */
export function endpoints(data: RunData, group: Group): HTMLElement {
  const list = listing(data.labels, columns(data));
  const small = data.label_series && charts(data, data.label_series, group);
  const filter = (word: string): void => {
    remember("filter of endpoints", word);
    const wanted = (label: Label): boolean => label.name.toLowerCase().includes(word.toLowerCase());
    list.filter(wanted);
    small?.filter(wanted);
  };
  const field = el("input", { type: "search", placeholder: "Filter endpoints", "aria-label": "Filter endpoints", oninput: () => filter(field.value) });
  const before = recall("filter of endpoints", "");
  if (before !== "") {
    field.value = before;
    filter(before);
  }
  return el(
    "div",
    {},
    data.labels.length >= FILTER && el("p", { class: "filter" }, field),
    list.element,
    data.more_labels > 0 && el("p", { class: "note" }, `and ${count(data.more_labels)} more with fewer requests; JSON has them all`),
    small?.element,
  );
}

function columns(data: RunData): Column<Label>[] {
  const by = (i: number) => (row: Label): number => row.response.quantiles[i] ?? 0;
  const before = new Map(data.over?.run.labels.map((label) => [label.name, label]));
  const moved = (row: Label): string => change(by(3)(row), before.get(row.name)?.response.quantiles[3] ?? 0) || "–";
  return [
    { name: "Endpoint", show: (row) => row.name, key: (row) => row.name },
    { name: "sent", show: (row) => count(row.sent), key: (row) => row.sent, number: true },
    { name: "not ok", title: "Failed or unfinished", show: (row) => count(row.failed), key: (row) => row.failed, number: true, bad: (row) => row.failed > 0 },
    { name: "share", title: "Failed or unfinished, of those sent", show: (row) => percent(share(row)), key: share, number: true },
    ...[0, 1, 3].map((i): Column<Label> => ({ name: ["p50", "p90", "", "p99"][i] ?? "", title: "Response time", show: (row) => quantile(row.response, i), key: by(i), number: true })),
    ...(data.over ? [{ name: "p99 was", title: `In ${data.over.name}, and the change since`, show: (row: Label) => `${quantile(before.get(row.name)?.response, 3)}, ${moved(row)}`, number: true }] : []),
    { name: "max", title: "Response time", show: (row) => duration(row.response.max), key: (row) => row.response.max, number: true },
    { name: "mean", title: "Response time", show: (row) => duration(row.response.mean), key: (row) => row.response.mean, number: true },
    { name: "service p99", show: (row) => duration(row.service_p99), key: (row) => row.service_p99, number: true },
  ];
}

/** A small chart per endpoint with a series. */
function charts(data: RunData, series: LabelSeries, group: Group): { element: HTMLElement; filter: (keep: (label: Label) => boolean) => void } | null {
  if (series.second.length < 3) return null;
  const intervals = new Intervals(series.second, series.seconds, data.elapsed_ns / 1e9, data.warmup_s, true);
  const time = new Timeline(intervals, group, []);
  const drawn = data.labels.filter((label) => series.labels[label.index]);
  const made = new Map<Label, HTMLElement>();
  const figure = (label: Label): HTMLElement => {
    const known = made.get(label);
    if (known) return known;
    const chart = one(data, label, series, time);
    made.set(label, chart);
    return chart;
  };
  const grid = el("div", { class: "smalls" });
  const more = el("button", { class: "tool", type: "button" });
  let keep = (_label: Label): boolean => true;
  let most = recall("most charts of endpoints", SHOWN);
  const show = (): void => {
    const wanted = drawn.filter(keep).sort((a, b) => b.sent - a.sent);
    grid.replaceChildren(...wanted.slice(0, most).map(figure));
    more.hidden = wanted.length <= most;
    more.textContent = `Show all ${count(wanted.length)} charts`;
  };
  more.addEventListener("click", () => {
    most = Infinity;
    remember("most charts of endpoints", most);
    show();
  });
  show();
  const swatch = (name: string, hue: string): HTMLElement => {
    const mark = el("i", { class: "swatch" });
    mark.style.setProperty("--swatch", `var(--${hue})`);
    return el("span", { class: "key" }, mark, name);
  };
  return {
    element: el(
      "div",
      {},
      el("div", { class: "legend" }, swatch("p50", "blue"), swatch("p99 of response time", "blue-3"), swatch("share not ok", "red")),
      grid,
      more,
    ),
    filter: (wanted) => {
      keep = wanted;
      show();
    },
  };
}

function one(data: RunData, label: Label, series: LabelSeries, time: Timeline): HTMLElement {
  const line = series.labels[label.index];
  const [p50, p99] = [nanos(line?.p50), nanos(line?.p99)].map((values) => time.intervals.measured(values));
  const seen = (p50 ?? []).filter((value) => value !== null && value > 0) as number[];
  const most = (p99 ?? []).reduce<number>((high, value) => Math.max(high, value ?? 0), 0);
  const far = most > 30 * seen.reduce((low, value) => Math.min(low, value), Infinity);
  const chart = time.chart({
    title: label.name,
    small: true,
    height: 108,
    y: { tick: durationTick, read: duration, ...(far && { log: "start" as const }) },
    lines: [
      { name: "p50", values: p50 ?? [], colour: "blue", width: 1.75 },
      { name: "p99", values: p99 ?? [], colour: "blue-3", width: 1.25 },
    ],
    bands: [{ upper: 1, lower: 0, colour: "blue", fill: 0.22 }],
    marks: marksOf(data, "response", label.name),
    // Failures at the bottom, as a share of requests that ended.
    under: (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.fillStyle = faded("red", 0.8);
      line?.failed.forEach((n, i) => {
        if (n === 0) return;
        const start = series.second[i] ?? 0;
        const end = start + (series.seconds[i] ?? 1);
        const [left, right] = [start, end].map((at) => Math.min(Math.max(plot.valToPos(at, "x", true), bbox.left), bbox.left + bbox.width)) as [number, number];
        const height = Math.max((bbox.height * 0.5 * n) / Math.max(line.sent[i] ?? n, 1), 2 * devicePixelRatio);
        if (right > left) ctx.fillRect(left, bbox.top + bbox.height - height, Math.max(right - left, 1), height);
      });
      ctx.restore();
    },
    tip: (i) => {
      const n = line?.sent[i] ?? 0;
      const [low, high] = [p50?.[i], p99?.[i]].map((value) => (typeof value === "number" ? duration(value) : "–"));
      return [time.read(i), `p50 ${low}, p99 ${high}`, `${count(line?.failed[i] ?? 0)} of ${count(n)} not ok`];
    },
  });
  return el(
    "div",
    { class: "small-card" },
    el("h4", { title: label.name }, label.name),
    el("p", { class: label.failed > 0 ? "note bad" : "note" }, `p99 ${quantile(label.response, 3)}, ${percent(share(label))} not ok`),
    chart.element,
  );
}
