//! `cargo xtask bench`.
use anyhow::Result;
/// The task.
pub fn main(_: &[String]) -> Result<()> {
    Ok(())
}
pub mod recorder {
    //! x
    use anyhow::Result;
    pub fn main(_: &[String]) -> Result<()> {
        Ok(())
    }
}
