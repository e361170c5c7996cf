/** What pages are put together from. */

import { el } from "../dom";

/** A part of the page under a heading. */
export function section(title: string, ...children: (Node | false)[]): HTMLElement {
  return el("section", {}, el("h2", {}, title), ...children);
}

/** Charts beside each other where there is room. */
export function pair(...charts: { element: HTMLElement }[]): HTMLElement {
  return el("div", { class: "pair" }, ...charts.map((chart) => chart.element));
}

/** Names and values in a line; those without a value are left out. */
export function facts(pairs: [string, string | 0 | false][]): HTMLElement {
  const list = el("div", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value) list.append(el("dl", {}, el("dt", {}, name), el("dd", {}, value)));
  }
  return list;
}

/** A titled box of figures. */
export function card(title: string, ...children: Node[]): HTMLElement {
  return el("div", { class: "card" }, el("h3", {}, title), ...children);
}

/** A figure with its name. */
export function tile(name: string, value: string, kind = "", title?: string): HTMLElement {
  return el("dl", { class: `tile ${kind}`.trim(), title }, el("dt", {}, name), el("dd", {}, value));
}
