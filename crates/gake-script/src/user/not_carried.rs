//! The published QuickJS: its promises carry no state of the host.

use std::any::Any;
use std::rc::Rc;

use rquickjs::{Ctx, Function};

/// Whether [`carry`] has an effect.
pub const CARRIES_STATE: bool = false;

/// A state of the host.
pub trait CarriedState {
    /// The state that is in force.
    fn now(&self) -> Rc<dyn Any>;
    /// Puts a state in force that [`CarriedState::now`] returned.
    fn set(&self, state: &Rc<dyn Any>);
}

/// Does nothing.
pub fn carry(_: &Ctx<'_>, _: Rc<dyn CarriedState>) {}

/// Returns the function.
///
/// # Errors
/// Never.
pub fn bound<'js>(_: &Ctx<'js>, function: Function<'js>) -> rquickjs::Result<Function<'js>> {
    Ok(function)
}
