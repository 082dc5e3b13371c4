//! A bound on what may hang: a saturated bus answers after 10 to 25 s (runc #4853), and a command must not
//! wait for it.

use std::sync::mpsc;
use std::time::Duration;

use crate::error::{Error, Result};

/// Runs `action` on a thread of its own and waits so long for it. A thread that hangs is left behind; it
/// holds nothing that anybody else waits for.
pub(crate) fn within<T: Send + 'static>(
    patience: Duration,
    call: &'static str,
    action: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("headroom-bus".to_owned())
        .spawn(move || {
            let _nobody_waits_any_more = sender.send(action());
        })
        .map_err(|e| Error::call("thread", e))?;
    receiver.recv_timeout(patience).unwrap_or_else(|_| Err(Error::call(call, std::io::ErrorKind::TimedOut)))
}
