//! Which socket to talk to. A service started by the system has no `XDG_RUNTIME_DIR` although its user's
//! manager runs, so the usual place is tried as well; both only after a look at who owns them.

use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::{Error, Result};

/// Whose manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bus {
    /// The user's own.
    User,
    /// The system's, for root.
    System,
}

const SYSTEM_SOCKET: &str = "/run/dbus/system_bus_socket";

/// Finds the socket of a bus and checks that it is what it should be.
pub fn find_socket(bus: Bus) -> Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    match bus {
        Bus::System => {
            let socket = PathBuf::from(SYSTEM_SOCKET);
            check(&socket, FileType::Socket, 0, 0)?;
            Ok(socket)
        }
        Bus::User => {
            let variable = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
            let usual = PathBuf::from(format!("/run/user/{uid}"));
            let named = variable.map(|dir| check_user_socket(&dir, uid));
            match named {
                Some(Ok(socket)) => Ok(socket),
                // The reason that stands in the place which the user named explains more.
                Some(Err(error)) => check_user_socket(&usual, uid).map_err(|_| error),
                None => check_user_socket(&usual, uid),
            }
        }
    }
}

fn check_user_socket(dir: &Path, uid: u32) -> Result<PathBuf> {
    // Who may write to the directory may put another socket in its place.
    check(dir, FileType::Directory, uid, 0o022)?;
    let socket = dir.join("bus");
    check(&socket, FileType::Socket, uid, 0)?;
    Ok(socket)
}

fn check(path: &Path, kind: FileType, uid: u32, forbidden_bits: u32) -> Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::io(path, e))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| Error::io(path, e))?;
    let refuse = |why| Err(Error::Unsafe { path: path.to_path_buf(), why });
    if FileType::from_raw_mode(stat.st_mode) != kind {
        return refuse("is not of the kind it should be");
    }
    if stat.st_uid != uid {
        return refuse("belongs to another user");
    }
    if stat.st_mode & forbidden_bits != 0 {
        return refuse("can be written to by others");
    }
    Ok(())
}
