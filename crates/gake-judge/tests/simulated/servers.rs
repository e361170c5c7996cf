//! The servers of the study, each with an objective and its exact capacity.

use gake_judge::{Clause, Objective};

use super::server::{Metastable, Model, Service};

/// A server, its objectives, and its exact capacity.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: &'static str,
    /// A description for the study's table.
    #[allow(dead_code, reason = "only the study shows it")]
    pub what: &'static str,
    pub model: Model,
    pub objectives: &'static [&'static str],
    /// The capacity, in requests a second.
    pub truth: f64,
}

impl Case {
    pub fn clauses(&self) -> Vec<Clause> {
        let clause = |text: &&str| text.parse::<Objective>().unwrap().clause().unwrap();
        self.objectives.iter().map(clause).collect()
    }
}

/// All cases. The capacities of M/M/c and M/D/c are theoretical; the others come from runs of 3·10⁷
/// requests per rate.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
pub fn cases() -> Vec<Case> {
    let drifting = |case: Case, name, what| Case {
        name,
        what,
        model: Model { drift: 0.1, ..case.model.clone() },
        ..case
    };
    let mmc = Case {
        name: "mmc",
        what: "M/M/8, 20 ms",
        model: Model::default(),
        objectives: &["p99<150ms"],
        truth: 363.185,
    };
    let usl = Case {
        name: "usl",
        what: "USL server (σ 0.02, κ 0.0005)",
        model: Model {
            slots: 64,
            places: 600,
            service: 0.01,
            sigma: 0.02,
            kappa: 0.0005,
            ..Model::default()
        },
        objectives: &["p99<100ms", "errors<0.1%"],
        truth: 1411.1,
    };
    vec![
        mmc.clone(),
        Case {
            name: "mm16",
            what: "M/M/16, 10 ms",
            model: Model { slots: 16, service: 0.01, ..Model::default() },
            objectives: &["p99<60ms"],
            truth: 1488.40,
        },
        Case {
            name: "mm2",
            what: "M/M/2, 30 ms",
            model: Model { slots: 2, service: 0.03, ..Model::default() },
            objectives: &["p99<400ms"],
            truth: 54.80,
        },
        Case {
            name: "mm1",
            what: "M/M/1, 2 ms",
            model: Model { slots: 1, service: 0.002, ..Model::default() },
            objectives: &["p99<20ms"],
            truth: 269.74,
        },
        Case {
            name: "mdc",
            what: "M/D/8, 20 ms",
            model: Model { kind: Service::Fixed, ..Model::default() },
            objectives: &["p99<50ms"],
            truth: 335.11,
        },
        Case {
            name: "mgc",
            what: "M/G/16, 10 ms, lognormal (1.5)",
            model: Model {
                slots: 16,
                service: 0.01,
                kind: Service::Lognormal(1.5),
                ..Model::default()
            },
            objectives: &["p99<80ms"],
            truth: 1443.0,
        },
        Case {
            name: "mmck",
            what: "M/M/8 with 40 places, 20 ms",
            model: Model { places: 40, ..Model::default() },
            objectives: &["p99<150ms", "errors<0.1%"],
            truth: 348.678,
        },
        Case {
            name: "pool",
            what: "pool of 20 without a queue, 20 ms, lognormal (1.0)",
            model: Model {
                slots: 20,
                places: 20,
                kind: Service::Lognormal(1.0),
                ..Model::default()
            },
            objectives: &["p99<200ms", "errors<0.1%"],
            truth: 470.573,
        },
        usl.clone(),
        Case {
            name: "metastable",
            what: "metastable M/M/8, 20 ms",
            model: Model {
                places: 400,
                metastable: Some(Metastable { trigger: 0.3, slower: 2.5, heal: 120.0 }),
                ..Model::default()
            },
            objectives: &["p99<150ms", "errors<0.1%"],
            truth: 363.185,
        },
        drifting(usl, "usl-drift", "USL server, 10 % drift between steps"),
        drifting(mmc, "mmc-drift", "M/M/8, 10 % drift between steps"),
        Case {
            name: "stalls",
            what: "M/M/8, 5 ms, stopped for 100 ms every 10 s",
            model: Model { service: 0.005, stall: 0.1, ..Model::default() },
            objectives: &["p99<60ms"],
            truth: 852.0,
        },
    ]
}
