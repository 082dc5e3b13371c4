//! N-API binding of `headroom-core`: data objects and error codes, no policy and no defaults.
//!
//! Every export catches panics, because an uncaught one would abort the host. Sizes cross as numbers of
//! bytes (exact below 2^53). Absent values are `null`. A failed call throws an error whose message
//! starts with a stable code and a colon; what is expected to fail answers an object instead.

#![allow(clippy::needless_pass_by_value, reason = "arguments that cross from JavaScript are owned")]

mod boxes;
mod error;
mod job;
mod machine;
mod modes;
mod slots;
mod status;
mod tracked;
mod watchdog;

use napi_derive::napi;

/// The version of this addon; the loader compares it with the package's.
#[napi(catch_unwind)]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// A caught panic is reported as an error; the default hook would also write to the host's stderr.
#[napi_derive::module_init]
fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|_| {}));
}
