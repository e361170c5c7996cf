/** The data of a search's page, written by gake-report/src/html/find.rs. */

export interface FindData {
  kind: "find";
  gake: string;
  started: string;
  /** Why it ended, in words. */
  ended: string;
  /** What must be known to read the number. */
  notes: string[];
  /** What to do when there is no answer, or none as narrow as asked. */
  next: string[];
  /** What the map says, in words; the first names the class. */
  beyond: { good: boolean; text: string }[];
  /** Steps that are not here: the first ones. */
  more_steps: number;
  find: Find;
}

/** The schema gake.find/1, in which docs/gake.find.1.schema.json says what is what. */
export interface Find {
  target: string;
  dimension: "rate" | "users" | "connections" | "connect-rate" | "tls-handshakes" | "streams";
  arrivals: string;
  objectives: string[];
  budget_s: number;
  precision: number;
  answer: {
    found: "capacity" | "at_least" | "infeasible" | "unknown";
    capacity: number | null;
    low: number | null;
    high: number | null;
    safe: number | null;
    why: string | null;
    bound_by: string | null;
    steepness: number | null;
    throughput_max: number;
    unloaded_s: number;
    ladder: { users: number; throughput: number; response_s: number }[];
  };
  steps: Step[];
  scaling: {
    gamma: Ranged;
    sigma: Ranged;
    kappa: Ranged;
    peak_users: Ranged | null;
    peak_throughput: Ranged | null;
    peak_determined: boolean;
  } | null;
  pool: { throughput: number; service_s: number; slots: Ranged } | null;
  map: { stairs: Stair[] } | null;
  /** What limited the target in the steps in which it was at its limit. */
  causes: { id: string; evidence: string; advice: string; check: string; steps: number }[];
  overloaded_steps: number;
}

export interface Ranged {
  value: number;
  low: number;
  high: number | null;
}

export interface Step {
  purpose: string;
  load: "rate" | "users" | "connections";
  asked: number;
  level: number;
  measured_s: number;
  due: number;
  errors: number;
  throughput: number;
  response_s: number;
  /** For each objective; over 1 it failed. */
  of_allowed: (number | null)[];
  outcome: "pass" | "fail" | "inconclusive" | "limited" | "contaminated";
  limited: string | null;
}

export interface Stair {
  leg: "up" | "down";
  level: number;
  ok: number;
  good: number;
  failed: number;
  response_s: number;
}
