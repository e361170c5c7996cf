/** What pages are put together from. */

import { el } from "../dom";

/** A part of the page under a heading, which links lead to. */
export function section(title: string, ...children: (Node | false | null)[]): HTMLElement {
  return el("section", { id: slug(title) }, el("h2", {}, title), ...children);
}

/** A title as a fragment of an address. */
export function slug(title: string): string {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
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
export function card(title: string, ...children: (Node | false | null)[]): HTMLElement {
  return el("div", { class: "card" }, el("h3", {}, title), ...children);
}

/** A figure with its name, and below it what it was in the run behind. */
export function tile(name: string, value: string, kind = "", title?: string, before?: Node | null): HTMLElement {
  return el(
    "dl",
    { class: `tile ${kind}`.trim(), title },
    el("dt", {}, name),
    el("dd", {}, value),
    before && el("dd", { class: "before" }, before),
  );
}

/** A change from one value to another, as a share of the first; nothing when one is missing. */
export function change(now: number, before: number): string {
  if (!(now > 0 && before > 0)) return "";
  const share = (now / before - 1) * 100;
  if (Math.abs(share) < 0.05) return "±0 %";
  const text = Math.abs(share) < 9.95 ? Math.abs(share).toFixed(1) : Math.abs(share).toFixed(0);
  return share >= 999.5 ? `× ${(now / before).toFixed(0)}` : `${share < 0 ? "−" : "+"}${text} %`;
}

/** A button that copies a text, or selects `block` where the clipboard is out of reach. */
export function copier(text: string, block: HTMLElement): HTMLElement {
  const button = el("button", { class: "tool copy", type: "button", onclick: () => void copy() }, "Copy");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(block);
      button.textContent = "Selected";
    }
  };
  return button;
}
