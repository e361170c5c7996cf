/** The reader's choices, kept while a live page is redrawn. */

const chosen = new Map<string, unknown>();

/** Stores a choice. */
export function remember(what: string, choice: unknown): void {
  chosen.set(what, choice);
}

/** The stored choice, or `otherwise`. */
export function recall<Choice>(what: string, otherwise: Choice): Choice {
  return chosen.has(what) ? (chosen.get(what) as Choice) : otherwise;
}
