/** The page of a run: whether it is believable, the results, failures, and causes. */

import { Bar, type Pill } from "../charts/bar";
import { Group } from "../charts/group";
import { header } from "../charts/header";
import type { Stretch } from "../charts/options";
import { redraw } from "../charts/redraw";
import { Intervals, Timeline } from "../charts/time";
import { el } from "../dom";
import { rate } from "../format";
import { section } from "./elements";
import { connections, errors, generator, latency, target, traffic } from "./run-charts";
import { endpoints } from "./run-endpoints";
import { agents, events, metrics } from "./run-tables";
import type { RunData } from "./run-data";
import { source } from "./run-source";
import { findings, headline, objectives, pills, plan, tiles, verdict } from "./run-top";

/** Parts of the live page besides its data. */
export interface PageExtras {
  /** A pill before all others. */
  pill?: Pill;
  /** Buttons beside the title. */
  tools?: HTMLElement[];
}

/** The page of a run, which can be shown again with more data. */
export class RunPage {
  private readonly group = new Group();
  private bar: Bar | undefined;

  constructor(private readonly root: HTMLElement) {}

  /** Shows the run. */
  show(data: RunData, { pill, tools = [] }: PageExtras = {}): void {
    document.title = `gake: ${data.target}`;
    const words = [...(pill ? [pill] : []), ...pills(data)];
    if (this.bar) this.bar.show(words, headline(data));
    else this.root.before((this.bar = new Bar(words, headline(data), this.group)).element);
    redraw(this.root, () => this.parts(data, tools));
    this.bar.link(this.root);
  }

  private parts(data: RunData, tools: HTMLElement[]): HTMLElement[] {
    const sides = [objectives(data), findings(data)].filter((part) => part !== null);
    return [
      header({ brand: "gake run", title: data.target }, ...tools),
      el("div", { class: "first" }, plan(data), verdict(data), tiles(data)),
      ...(sides.length > 0 ? [el("div", { class: sides.length > 1 ? "sides" : "" }, ...sides)] : []),
      ...charts(data, this.group),
      section("About this run", source(data)),
      footer(data.gake),
    ];
  }
}

/** Draws the report of a run. */
export function run(root: HTMLElement, data: RunData): void {
  new RunPage(root).show(data);
}

/** The sections with charts and tables. */
export function charts(data: RunData, group: Group): HTMLElement[] {
  const time = timeline(data, group);
  const seen = data.series.second.length > 0;
  const parts = [
    seen && traffic(data, time),
    seen && latency(data, time),
    errors(data, time),
    ...metrics(data),
    data.labels.length > 0 && section("Endpoints", endpoints(data, group)),
    seen && connections(data, time),
    data.target_levels && target(data, data.target_levels, time),
    seen && generator(data, time),
    data.agents.length > 0 && section("Agents", agents(data)),
    data.events.length > 0 && section("Events", events(data)),
  ];
  return parts.filter((part) => part !== false && part !== null);
}

/** Usage hints and the version. */
export function footer(version: string): HTMLElement {
  return el("footer", {}, `gake ${version}. Drag over a chart to zoom, double-click to reset.`);
}

function timeline(data: RunData, group: Group): Timeline {
  const behind = data.over && { name: data.over.name, intervals: intervals(data.over.run) };
  return new Timeline(intervals(data), group, stages(data), behind ?? undefined);
}

/** The intervals of a run's series. */
function intervals({ series, elapsed_ns, warmup_s }: RunData): Intervals {
  const last = series.second.length - 1;
  const trouble = [series.failed, series.unfinished, series.dropped, series.unsent].some((counts) => (counts[last] ?? 0) > 0);
  return new Intervals(series.second, series.seconds, elapsed_ns / 1e9, warmup_s, trouble);
}

/** The stages, with alternating shades. */
function stages(data: RunData): Stretch[] {
  return data.stages.map(({ start, end, from, to }, i) => ({
    from: start,
    to: end,
    text: from === to ? rate(from) : `${rate(from).replace("/s", "")} → ${rate(to)}`,
    shade: i % 2 ? "odd" : "even",
  }));
}
