//! The tags of what a module sends: system tags, then own tags of the script, then tags of the user.

use std::borrow::Cow;

use super::series_index::TagSource;
use super::vu::Vu;

/// Tags of a request, call or session. A system tag that `systemTags` leaves out selects nothing,
/// and leaves its name to the script.
pub(crate) trait RequestTags {
    /// The system tags that it may have.
    const SYSTEM: &'static [&'static str];

    /// The user that sends it.
    fn vu(&self) -> &Vu;

    /// The script's own tags, without `name`.
    fn own(&self) -> &[(String, String)];

    /// The script's own tag `name`.
    fn name(&self) -> Option<&str>;

    /// The value of a tag of `SYSTEM`.
    fn system(&self, key: &str) -> Option<Cow<'_, str>>;

    /// The value of a tag of the script or of the user.
    fn own_or_users(&self, key: &str) -> Option<Cow<'_, str>> {
        let name = self.name().filter(|_| key == "name");
        let own = || self.own().iter().rev().find(|(known, _)| known == key);
        match name.or_else(|| own().map(|(_, value)| value.as_str())) {
            Some(value) => Some(value.into()),
            None => self.vu().tag(key),
        }
    }
}

impl<T: RequestTags> TagSource for T {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        match T::SYSTEM.contains(&key) && self.vu().test.has_system_tag(key) {
            true => self.system(key),
            false => self.own_or_users(key),
        }
    }

    fn keys(&self) -> Vec<String> {
        let vu = self.vu();
        let system = T::SYSTEM.iter().copied().filter(|tag| vu.test.has_system_tag(tag));
        let own = self.own().iter().map(|(name, _)| name.clone());
        system.map(str::to_owned).chain(own).chain(vu.keys()).collect()
    }
}
