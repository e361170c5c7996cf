/** The sticky bar: the verdict, the main figures, and links to the sections. */

import { el } from "../dom";
import { onTheme, theme, toggleTheme } from "../theme/theme";
import type { Group } from "./group";

/** A coloured word. */
export interface Pill {
  text: string;
  state: "valid" | "suspect" | "invalid" | "running" | "";
  title?: string;
  /** The section that it links to; by default the verdict. */
  link?: string;
}

/** A figure of the bar. */
export interface Figure {
  name: string;
  value: string;
  bad?: boolean;
}

/** The bar; it links to the sections below `root` once the page is complete. */
export class Bar {
  readonly element: HTMLElement;
  private readonly pills = el("div", { class: "pills" });
  private readonly figures = el("div", { class: "figures" });
  private readonly links = el("nav", { class: "links", "aria-label": "Sections" });
  private readonly menu = el("details", { class: "menu" });
  private readonly themes = themeButton();
  private seen: IntersectionObserver | undefined;
  private linked = "";

  constructor(pills: Pill[], figures: Figure[], group?: Group) {
    const reset = group && this.reset(group);
    this.show(pills, figures);
    this.element = el(
      "div",
      { class: "bar", role: "banner" },
      el(
        "div",
        { class: "bar-in" },
        this.pills,
        this.figures,
        this.links,
        el("div", { class: "tools" }, reset ?? null, this.menu, themeButton()),
      ),
    );
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  /** Replaces words and figures. */
  show(pills: Pill[], figures: Figure[]): void {
    const marks = pills.map(({ text, state, title, link }) =>
      el("a", { class: "pill", "data-verdict": state, href: `#${link ?? "verdict"}`, title }, text),
    );
    const values = figures.map(({ name, value, bad }) =>
      el("dl", { class: bad ? "bad" : undefined }, el("dt", {}, name), el("dd", {}, value)),
    );
    this.pills.replaceChildren(...marks);
    this.figures.replaceChildren(...values);
  }

  private reset(group: Group): HTMLElement {
    const button = el("button", { class: "tool", type: "button", hidden: true, onclick: () => group.zoom(null) }, "Reset zoom");
    group.watch((span) => (button.hidden = span === null));
    return button;
  }

  /** Links to every section with a heading, and marks the current one. */
  link(root: HTMLElement): void {
    const sections = [...root.querySelectorAll<HTMLElement>(":scope > section[id]")].filter((part) => part.querySelector("h2"));
    const entries = sections.map((part) => ({ part, name: part.querySelector("h2")?.firstChild?.textContent ?? "" }));
    const names = entries.map(({ name }) => name).join();
    if (names !== this.linked) {
      this.linked = names;
      const close = (): void => void (this.menu.open = false);
      this.links.replaceChildren(...entries.map(({ part, name }) => el("a", { href: `#${part.id}` }, name)));
      this.menu.replaceChildren(
        el("summary", { class: "tool" }, "Sections"),
        el("nav", { "aria-label": "Sections" }, ...entries.map(({ part, name }) => el("a", { href: `#${part.id}`, onclick: close }, name)), this.themes),
      );
    }
    const anchors = [...this.links.children];
    // A section is current while it is in the upper third.
    this.seen?.disconnect();
    const seen = (this.seen = new IntersectionObserver(
      (changes) => {
        for (const { target, isIntersecting } of changes) {
          if (!isIntersecting) continue;
          const at = sections.indexOf(target as HTMLElement);
          anchors.forEach((anchor, i) => anchor.toggleAttribute("aria-current", i === at));
        }
      },
      { rootMargin: "-60px 0px -66% 0px" },
    ));
    for (const part of sections) seen.observe(part);
    this.fit();
  }

  /** Links that do not fit into the bar move to a menu. */
  private fit(): void {
    this.element.classList.remove("full");
    this.element.classList.toggle("full", this.links.scrollWidth > this.links.clientWidth + 1);
  }
}

/** The theme switch. */
export function themeButton(): HTMLElement {
  const button = el("button", { class: "tool theme", type: "button", title: "Light or dark", onclick: toggleTheme });
  const label = (): void => {
    button.textContent = theme() === "dark" ? "Light" : "Dark";
  };
  label();
  onTheme(label);
  return button;
}
