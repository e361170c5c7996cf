/** The title of every page. */

import { el } from "../dom";

/** The page's brand and title; `extra` is on the right. */
export function header(texts: { brand: string; title: string }, ...extra: HTMLElement[]): HTMLElement {
  return el(
    "header",
    {},
    el("div", { class: "titles" }, el("p", { class: "brand" }, texts.brand), el("h1", {}, texts.title)),
    extra.length > 0 && el("div", { class: "tools" }, ...extra),
  );
}
