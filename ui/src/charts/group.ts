/** Charts over the same x, with a shared cursor and zoom. */

/** What a group needs from a chart. */
export interface Member {
  /** Shows the cursor at an x, or hides it. */
  point(x: number | null): void;
  /** Shows a span of x, or everything. */
  zoom(span: Span | null): void;
}

/** From and to, on the x axis. */
export type Span = readonly [number, number];

/** Charts that share cursor and zoom. */
export class Group {
  private readonly members = new Set<Member>();
  private readonly watchers = new Set<(span: Span | null) => void>();
  private busy = false;
  /** The visible span; null is everything. */
  span: Span | null = null;

  /** Adds a chart. */
  add(member: Member): void {
    this.members.add(member);
  }

  /** Calls back when the span changes. */
  watch(watcher: (span: Span | null) => void): void {
    this.watchers.add(watcher);
  }

  /** Shows the cursor at an x on every chart except its origin. */
  point(x: number | null, from: Member): void {
    this.tell((member) => member !== from && member.point(x));
  }

  /** Shows a span on every chart. */
  zoom(span: Span | null): void {
    this.span = span;
    this.tell((member) => member.zoom(span));
    for (const watcher of this.watchers) watcher(span);
  }

  /** Charts notify the group of the change that it just sent them: ignore that. */
  private tell(what: (member: Member) => void): void {
    if (this.busy) return;
    this.busy = true;
    for (const member of this.members) what(member);
    this.busy = false;
  }
}
