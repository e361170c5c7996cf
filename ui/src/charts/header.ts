/** The top of every page: what it is, and the switch of the theme. */

import { el } from "../dom";
import { onTheme, theme, toggleTheme } from "../theme/theme";

/** The page's header; `extra` stands beside the theme's switch. */
export function header(
  texts: { brand: string; title: string },
  ...extra: HTMLElement[]
): HTMLElement {
  const button = el(
    "button",
    { class: "tool", type: "button", title: "Light or dark", onclick: toggleTheme },
  );
  const label = (): void => {
    button.textContent = theme() === "dark" ? "Light" : "Dark";
  };
  label();
  onTheme(label);
  return el(
    "header",
    {},
    el("div", { class: "titles" }, el("p", { class: "brand" }, texts.brand), el("h1", {}, texts.title)),
    el("div", { class: "tools" }, ...extra, button),
  );
}
