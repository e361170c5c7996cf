/** What the reader has chosen, for a page that is drawn again while it is read. */

const chosen = new Map<string, unknown>();

/** Keeps a choice. */
export function remember(what: string, choice: unknown): void {
  chosen.set(what, choice);
}

/** The choice made before, or `otherwise`. */
export function recall<Choice>(what: string, otherwise: Choice): Choice {
  return chosen.has(what) ? (chosen.get(what) as Choice) : otherwise;
}
