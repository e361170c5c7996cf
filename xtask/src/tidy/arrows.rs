//! The walls between the crates: `cargo metadata` against the level table.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Complaint;
use super::table::{FIXTURES, ROOMS, Room};

const RULE: &str = "arrow";

/// Compares what `cargo metadata` says with the table.
pub fn check(metadata: &Value) -> Result<Vec<Complaint>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut complaints = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package without a name")?;
        let Some(room) = room(name) else {
            complaints
                .push(complaint(name, "is not in the level table (xtask/src/tidy/crates.txt)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().context("a dependency without a name")?;
            let dev = dependency["kind"].as_str() == Some("dev");
            let is_ours = ours.contains(&to) || self::room(to).is_some();
            complaints.extend(check_arrow(room, to, dev, is_ours));
        }
    }
    Ok(complaints)
}

fn check_arrow(room: &Room, to: &str, dev: bool, is_ours: bool) -> Option<Complaint> {
    let kind = if dev { " (dev)" } else { "" };
    if is_ours {
        let fixture = dev && FIXTURES.contains(&to);
        let allowed = fixture || room.may_use.contains(&to);
        return (!allowed).then(|| {
            let may_use = if room.may_use.is_empty() {
                "nothing of ours".to_owned()
            } else {
                room.may_use.join(", ")
            };
            let message = format!("new arrow {} → {to}{kind}: it may use {may_use}", room.name);
            complaint(room.name, &message)
        });
    }
    // A test may use what it likes of others.
    (!dev && room.strangers.contains(&to))
        .then(|| complaint(room.name, &format!("uses {to}, which its place in the table excludes")))
}

/// The table itself: arrows point down, and to crates that are in it.
pub fn check_table() -> Vec<Complaint> {
    let arrows = ROOMS.iter().flat_map(|room| room.may_use.iter().map(move |to| (room, *to)));
    arrows
        .filter(|(from, to)| room(to).is_none_or(|to| to.level >= from.level))
        .map(|(from, to)| {
            complaint(from.name, &format!("the table's arrow to {to} does not point down"))
        })
        .collect()
}

fn room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

fn complaint(name: &str, message: &str) -> Complaint {
    Complaint::error(name, RULE, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(name: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        let metadata = json!({"packages": [
            {"name": name, "dependencies": dependencies},
            {"name": "gake-core", "dependencies": []},
        ]});
        let complaints = check(&metadata).unwrap();
        complaints.into_iter().map(|complaint| complaint.message).collect()
    }

    #[test]
    fn the_table_points_down() {
        assert_eq!(check_table(), []);
    }

    #[test]
    fn allowed_arrows_are_silent() {
        assert!(messages("gake-report", &[("gake-core", None), ("gake-judge", None)]).is_empty());
        assert!(messages("gake", &[("gake-wire", None), ("clap", None)]).is_empty());
    }

    #[test]
    fn an_arrow_between_neighbours_is_named() {
        let found = messages("gake-engine", &[("gake-wire", None)]);
        assert_eq!(found, ["new arrow gake-engine → gake-wire: it may use gake-core, gake-files"]);
    }

    #[test]
    fn an_arrow_upwards_is_named() {
        let found = messages("gake-core", &[("gake-wire", None)]);
        assert_eq!(found, ["new arrow gake-core → gake-wire: it may use gake-text"]);
    }

    #[test]
    fn the_lab_is_a_dev_dependency_only() {
        assert!(messages("gake-wire", &[("gake-lab", Some("dev"))]).is_empty());
        assert_eq!(messages("gake-wire", &[("gake-lab", None)]).len(), 1);
        assert_eq!(messages("gake-wire", &[("gake-engine", Some("dev"))]).len(), 1);
    }

    #[test]
    fn core_knows_no_sockets_but_its_tests_may() {
        assert_eq!(messages("gake-core", &[("tokio", None)]).len(), 1);
        assert!(messages("gake-core", &[("tokio", Some("dev")), ("serde", None)]).is_empty());
    }

    #[test]
    fn a_crate_outside_the_table_is_reported() {
        assert_eq!(messages("gake-extra", &[]).len(), 1);
    }
}
