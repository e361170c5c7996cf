/**
 * Drawing a page again with other data. Its charts stay where they are, with the reader's cursor,
 * zoom and hidden series; everything around them is made anew.
 */

import { Chart } from "./chart";
import type { ChartOptions } from "./options";

/** The charts of the page, by title and turn. */
const charts = new Map<string, Chart>();
/** How many charts of a title there were in this drawing. */
let turns = new Map<string, number>();
/** What stands for charts in a page that is being drawn again. */
let standins: Map<Node, HTMLElement> | undefined;

/** A chart to be placed in the page. */
export interface Placed {
  element: HTMLElement;
  chart: Chart;
}

/** A chart of the page: a new one, or that of the drawing before with other data. */
export function place(options: ChartOptions): Placed {
  const title = `${options.small ? "small " : ""}${options.title}`;
  const turn = turns.get(title) ?? 0;
  turns.set(title, turn + 1);
  const key = `${turn} ${title}`;
  let chart = charts.get(key);
  if (chart) chart.update(options);
  else charts.set(key, (chart = new Chart(options)));
  if (!standins) return { element: chart.element, chart };
  const element = document.createElement("figure");
  element.dataset["standin"] = "";
  standins.set(element, chart.element);
  return { element, chart };
}

/** Draws `make` into `root`, over what was drawn there before. */
export function redraw(root: HTMLElement, make: () => Node[]): void {
  turns = new Map();
  standins = new Map();
  replace(root, make(), standins);
  standins = undefined;
}

/** Gives `old` the children `fresh`, without moving a chart that has its place. */
function replace(old: Element, fresh: Node[], charts: Map<Node, HTMLElement>): void {
  const taken = new Set<Element>();
  const wanted = fresh.map((node) => settle(old, node, charts, taken));
  const stays = new Set(wanted);
  for (const child of [...old.childNodes]) if (!stays.has(child)) child.remove();
  wanted.forEach((node, i) => {
    if (old.childNodes[i] !== node) old.insertBefore(node, old.childNodes[i] ?? null);
  });
}

/** A fresh node with its charts: the old node at its place, if that has them. */
function settle(parent: Element, node: Node, charts: Map<Node, HTMLElement>, taken: Set<Element>): Node {
  const chart = charts.get(node);
  if (chart) return chart;
  if (!(node instanceof Element)) return node;
  const inside = [...node.querySelectorAll("[data-standin]")];
  const homes = inside.map((standin) => childWith(parent, charts.get(standin)));
  const home = homes.find((home) => home && home.tagName === node.tagName && !taken.has(home));
  if (!home) {
    for (const standin of inside) standin.replaceWith(charts.get(standin) ?? standin);
    return node;
  }
  taken.add(home);
  home.className = node.className;
  replace(home, [...node.childNodes], charts);
  return home;
}

/** The child of `parent` that contains a chart. */
function childWith(parent: Element, chart: HTMLElement | undefined): Element | null {
  let child: Element | null = chart ?? null;
  while (child && child.parentElement !== parent) child = child.parentElement;
  return child;
}
