/** Light and dark: the system's choice or the reader's; always light on paper. */

export type Theme = "light" | "dark";

const dark = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print");
const listeners = new Set<() => void>();
let chosen: Theme | undefined;

/** The current theme. */
export function theme(): Theme {
  if (paper.matches) return "light";
  return chosen ?? (dark.matches ? "dark" : "light");
}

/** Whether the page is being printed. */
export function printing(): boolean {
  return paper.matches;
}

/** Switches to the other theme. */
export function toggleTheme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  apply();
}

/** Calls back after every change of theme or medium. */
export function onTheme(listener: () => void): void {
  listeners.add(listener);
}

/** Follows the system's theme and printing. */
export function watchTheme(): void {
  dark.addEventListener("change", apply);
  paper.addEventListener("change", apply);
  apply();
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme();
  for (const listener of listeners) listener();
}

/** The value of a custom property, for drawing on canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
