/** The title of every page. */

import { el } from "../dom";

/** What the page is and what it is about; `extra` stands at the right. */
export function header(texts: { brand: string; title: string }, ...extra: HTMLElement[]): HTMLElement {
  return el(
    "header",
    {},
    el("div", { class: "titles" }, el("p", { class: "brand" }, texts.brand), el("h1", {}, texts.title)),
    extra.length > 0 && el("div", { class: "tools" }, ...extra),
  );
}
