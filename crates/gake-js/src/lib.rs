//! k6's modules that need nothing of a run, and how native functions read and show JavaScript values.
//!
//! Each module has a `make`, which creates its exports in a user's context. [`value`] converts
//! arguments, [`errors`] throws what scripts see of k6's own functions, [`native`] names them.

pub mod crypto;
pub mod crypto_subtle;
pub mod encoding;
pub mod errors;
pub mod hash;
pub mod html;
pub mod native;
pub mod streams;
pub mod text_codec;
pub mod value;
pub mod x509;
