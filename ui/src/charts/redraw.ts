/**
 * Redraws a page with new data. Its charts keep their element, and so the reader's cursor, zoom and
 * hidden lines; everything around them is created anew.
 */

import { Chart } from "./chart";
import type { ChartOptions } from "./options";

/** The charts of the page, by title and occurrence. */
const charts = new Map<string, Chart>();
/** The number of charts per title in the current drawing. */
let turns = new Map<string, number>();
/** Placeholders of charts in a page that is being redrawn. */
let placeholders: Map<Node, HTMLElement> | undefined;

/** A chart to be inserted into the page. */
export interface Placed {
  element: HTMLElement;
  chart: Chart;
}

/** A chart of the page: a new one, or that of the previous drawing with new data. */
export function place(options: ChartOptions): Placed {
  const title = `${options.small ? "small " : ""}${options.title}`;
  const turn = turns.get(title) ?? 0;
  turns.set(title, turn + 1);
  const key = `${turn} ${title}`;
  let chart = charts.get(key);
  if (chart) chart.update(options);
  else charts.set(key, (chart = new Chart(options)));
  if (!placeholders) return { element: chart.element, chart };
  const element = document.createElement("figure");
  element.dataset["placeholder"] = "";
  placeholders.set(element, chart.element);
  return { element, chart };
}

/** Draws `make` into `root`, replacing the previous drawing. */
export function redraw(root: HTMLElement, make: () => Node[]): void {
  turns = new Map();
  placeholders = new Map();
  replace(root, make(), placeholders);
  placeholders = undefined;
}

/** Replaces the children of `old` without moving a chart that stays. */
function replace(old: Element, fresh: Node[], charts: Map<Node, HTMLElement>): void {
  const taken = new Set<Element>();
  const wanted = fresh.map((node) => settle(old, node, charts, taken));
  const stays = new Set(wanted);
  for (const child of [...old.childNodes]) if (!stays.has(child)) child.remove();
  wanted.forEach((node, i) => {
    if (old.childNodes[i] !== node) old.insertBefore(node, old.childNodes[i] ?? null);
  });
}

/** A new node with its charts: the old node in its place, if that contains them. */
function settle(parent: Element, node: Node, charts: Map<Node, HTMLElement>, taken: Set<Element>): Node {
  const chart = charts.get(node);
  if (chart) return chart;
  if (!(node instanceof Element)) return node;
  const inside = [...node.querySelectorAll("[data-placeholder]")];
  const homes = inside.map((placeholder) => childWith(parent, charts.get(placeholder)));
  const home = homes.find((home) => home && home.tagName === node.tagName && !taken.has(home));
  if (!home) {
    for (const placeholder of inside) placeholder.replaceWith(charts.get(placeholder) ?? placeholder);
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
