//! Errors as JavaScript gets them: `CODE: message`.

use headroom_core::Error;

/// Puts the code before the message.
pub(crate) fn thrown(error: &Error) -> napi::Error {
    napi::Error::from_reason(format!("{}: {error}", error.code()))
}

/// The same for what is wrong with the runtime directory, with what to do about it.
pub(crate) fn of_directory(error: &Error) -> napi::Error {
    napi::Error::from_reason(format!("{}: {}", error.code(), error.with_advice()))
}

/// An argument that the wrapper in `src/native.ts` should never have passed.
pub(crate) fn bad_argument(message: impl std::fmt::Display) -> napi::Error {
    napi::Error::from_reason(format!("E_ARGUMENT: {message}"))
}

/// Sizes as JavaScript numbers: exact below 2^53 bytes, which no machine here reaches.
#[expect(clippy::cast_precision_loss, reason = "2^53 bytes are 9 PB")]
pub(crate) fn number(bytes: u64) -> f64 {
    bytes as f64
}

/// A JavaScript number as bytes.
pub(crate) fn bytes(number: f64) -> napi::Result<u64> {
    if !(0.0..=9_007_199_254_740_991.0).contains(&number) {
        return Err(bad_argument(format!("{number} is no number of bytes")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok(number as u64)
}
