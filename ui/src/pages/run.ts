/** The report of a run: can it be believed, what came, how fast, what went wrong, and why. */

import { Group } from "../charts/group";
import { header } from "../charts/header";
import type { Stretch } from "../charts/options";
import { Pieces, Timeline } from "../charts/time";
import { el } from "../dom";
import { rate } from "../format";
import { section } from "./parts";
import { connections, errors, generator, latency, target, traffic } from "./run-charts";
import { endpoints } from "./run-endpoints";
import { events } from "./run-tables";
import type { RunData } from "./run-data";
import { source } from "./run-source";
import { bar, findings, objectives, plan, tiles, verdict } from "./run-top";

/** Draws the page. */
export function run(root: HTMLElement, data: RunData): void {
  document.title = `gake: ${data.target}`;
  const group = new Group();
  const top = bar(data, group);
  root.before(top.element);
  const sides = [objectives(data), findings(data)].filter((part) => part !== null);
  root.append(
    header({ brand: "gake run", title: data.target }),
    el("div", { class: "first" }, plan(data), verdict(data), tiles(data)),
    ...(sides.length > 0 ? [el("div", { class: sides.length > 1 ? "sides" : "" }, ...sides)] : []),
    ...charts(data, group),
    section("About this run", source(data)),
    footer(data.gake),
  );
  top.link(root);
}

/** The sections with the run's charts and tables. */
export function charts(data: RunData, group: Group): HTMLElement[] {
  const time = timeline(data, group);
  const seen = data.series.second.length > 0;
  const parts = [
    seen && traffic(data, time),
    seen && latency(data, time),
    errors(data, time),
    data.labels.length > 0 && section("Endpoints", endpoints(data, group)),
    seen && connections(data, time),
    data.target_levels && target(data, data.target_levels, time),
    seen && generator(data, time),
    data.events.length > 0 && section("Events", events(data)),
  ];
  return parts.filter((part) => part !== false && part !== null);
}

/** How the pages are used, and what made them. */
export function footer(version: string): HTMLElement {
  return el("footer", {}, `gake ${version}. Drag over a chart to zoom, double-click to see all of it again.`);
}

function timeline(data: RunData, group: Group): Timeline {
  const behind = data.over && { name: data.over.name, pieces: pieces(data.over.run) };
  return new Timeline(pieces(data), group, stages(data), behind ?? undefined);
}

/** The pieces of a run's series. */
function pieces({ series, elapsed_ns, warmup_s }: RunData): Pieces {
  const last = series.second.length - 1;
  const trouble = [series.failed, series.unfinished, series.dropped, series.unsent].some((counts) => (counts[last] ?? 0) > 0);
  return new Pieces(series.second, series.seconds, elapsed_ns / 1e9, warmup_s, trouble);
}

/** The stages, every other one shaded. */
function stages(data: RunData): Stretch[] {
  return data.stages.map(({ start, end, from, to }, i) => ({
    from: start,
    to: end,
    text: from === to ? rate(from) : `${rate(from).replace("/s", "")} → ${rate(to)}`,
    shade: i % 2 ? "odd" : "even",
  }));
}
