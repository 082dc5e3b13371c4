//! Passes signals on to a job: what is sent to `run` reaches the command it runs.
//!
//! A signal from the terminal (Ctrl-C, Ctrl-\, a resize, a hang-up) goes to the whole foreground group,
//! the job included, so it is noted but not sent a second time; `si_code` tells the two apart. See
//! sigaction(2). Only for a process that is all ours: it replaces the handlers of the host.

use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::proc::ProcFs;
use crate::process::PidFd;

/// What is passed on. After SIGTSTP this process stops as well, as it would have without a handler.
const PASSED_ON: [i32; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
];
/// How long a job may take to stop.
const STOP_LOOKS: u32 = 20;
const STOP_PAUSE: Duration = Duration::from_millis(5);
/// What asks a process to end.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Where the handler writes; −1 before the first forwarder is made.
static HANDLER_FD: AtomicI32 = AtomicI32::new(-1);

/// A signal that this process got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardedSignal {
    /// Its number.
    pub signal: i32,
    /// Sent by the terminal, so the job has it already.
    pub from_terminal: bool,
}

#[derive(Debug, Default)]
struct State {
    target: Option<PidFd>,
    /// Signals that came before there was a job.
    early: Vec<ForwardedSignal>,
    last_ending: Option<i32>,
    /// Signals asking to end that came when the job was over.
    after_the_end: u32,
}

/// Catches signals from its making on, and passes them on once there is a job.
#[derive(Debug, Clone)]
pub struct SignalForwarder {
    state: Arc<Mutex<State>>,
}

impl SignalForwarder {
    /// Installs the handlers and starts the thread that passes signals on. Call once a process.
    pub fn install() -> Result<Self> {
        let (reader, writer) = UnixStream::pair().map_err(|e| Error::call("socketpair", e))?;
        writer.set_nonblocking(true).map_err(|e| Error::call("fcntl", e))?;
        HANDLER_FD.store(writer.into_raw_fd(), Ordering::SeqCst);
        let forwarder = Self { state: Arc::default() };
        let worker = forwarder.clone();
        std::thread::Builder::new()
            .name("headroom-signal".to_owned())
            .spawn(move || worker.pass_on(reader))
            .map_err(|e| Error::call("thread", e))?;
        for signal in PASSED_ON {
            install_handler(signal)?;
        }
        Ok(forwarder)
    }

    /// Names the process that gets the signals; those that came earlier are sent now. One from the
    /// terminal too: the job was not there to get it.
    pub fn set_target(&self, target: PidFd) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let early = std::mem::take(&mut state.early);
        for got in &early {
            let _gone_is_fine = target.signal(got.signal);
        }
        state.target = Some(target);
    }

    /// Whether the job stops after SIGTSTP. One that handles it does not, nor does one in an orphaned process
    /// group; this process must not stand still then either.
    fn target_has_stopped(&self) -> bool {
        let pid = self.state.lock().unwrap_or_else(PoisonError::into_inner).target.as_ref().map(PidFd::pid);
        let (Some(pid), Ok(proc)) = (pid, ProcFs::system()) else { return false };
        (0..STOP_LOOKS).any(|_| {
            std::thread::sleep(STOP_PAUSE);
            proc.stat(pid).is_ok_and(|stat| stat.is_some_and(|stat| stat.state == 'T'))
        })
    }

    /// The last signal that asked the job to end, if any.
    #[must_use]
    pub fn last_ending_signal(&self) -> Option<i32> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last_ending
    }

    fn pass_on(&self, mut reader: UnixStream) {
        let mut message = [0_u8; 2];
        while reader.read_exact(&mut message).is_ok() {
            let [signal, from_terminal] = message;
            let got = ForwardedSignal { signal: i32::from(signal), from_terminal: from_terminal == 1 };
            if !self.take(got) {
                die_of(got.signal);
            }
            if got.signal == libc::SIGTSTP && self.target_has_stopped() {
                stop_this_process();
            }
        }
    }

    /// Passes one signal on. `false` when it asks to end, for the second time, and there is no job any more
    /// that could: the first one may have crossed the job's own end, whose account is being closed.
    fn take(&self, got: ForwardedSignal) -> bool {
        let asks_to_end = ENDING.contains(&got.signal);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if asks_to_end {
            state.last_ending = Some(got.signal);
        }
        let is_over = match &state.target {
            None => {
                state.early.push(got);
                false
            }
            Some(target) if got.from_terminal => target.wait(Duration::ZERO).unwrap_or(true),
            Some(target) => target.signal(got.signal).is_err(),
        };
        if is_over && asks_to_end {
            state.after_the_end += 1;
        }
        state.after_the_end < 2
    }
}

/// Ends this process as if the signal had never been caught.
fn die_of(signal: i32) {
    // SAFETY: restores the default action, which is always valid.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    send_to_self(signal);
}

fn stop_this_process() {
    send_to_self(libc::SIGSTOP);
}

fn send_to_self(signal: i32) {
    // SAFETY: asks for a number, cannot fail.
    let pid = unsafe { libc::getpid() };
    // SAFETY: sends a signal to this very process.
    unsafe { libc::kill(pid, signal) };
}

fn install_handler(signal: i32) -> Result<()> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    let action = action.as_mut_ptr();
    // SAFETY: `action` points to writable memory of the right type; all-zero bytes are a valid value.
    let action = unsafe { &mut *action };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler only does what signal-safety(7) allows: it reads its arguments and an atomic, and calls write.
    let answer = unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
    if answer == 0 { Ok(()) } else { Err(Error::call("sigaction", std::io::Error::last_os_error())) }
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to a handler installed with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    let from_terminal = code == libc::SI_KERNEL;
    let message = [u8::try_from(signal).unwrap_or(0), u8::from(from_terminal)];
    let fd: RawFd = HANDLER_FD.load(Ordering::SeqCst);
    // SAFETY: reading and restoring errno is what keeps a handler invisible to the code it interrupts.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: errno's address is valid for this thread's life.
    let saved = unsafe { *errno };
    // SAFETY: the buffer is valid for its length; a closed or full descriptor is an ignored error.
    unsafe { libc::write(fd, message.as_ptr().cast(), message.len()) };
    // SAFETY: as above.
    unsafe { *errno = saved };
}
