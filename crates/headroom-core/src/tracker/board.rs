//! Which calls of this process look for their shell, so that no two of them take the same one.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::boxing::BoxId;
use crate::proc::{ProcFs, ProcessKey};
use crate::tracker::call::squash;

/// More claims than that are of shells that have ended long ago.
const MANY_CLAIMS: usize = 1024;

#[derive(Debug)]
struct Call {
    agent: ProcessKey,
    /// Squashed.
    texts: Vec<String>,
    /// It still looks for its shell, or has just found it.
    is_starting: bool,
    is_finished: bool,
}

#[derive(Debug, Default)]
struct Board {
    calls: HashMap<BoxId, Call>,
    claimed: HashSet<ProcessKey>,
}

static BOARD: Mutex<Option<Board>> = Mutex::new(None);

fn with_board<T>(action: impl FnOnce(&mut Board) -> T) -> T {
    let mut board: MutexGuard<'_, Option<Board>> = BOARD.lock().unwrap_or_else(PoisonError::into_inner);
    action(board.get_or_insert_default())
}

/// A call's place on the board, until this is dropped.
#[derive(Debug)]
pub(super) struct Posted {
    id: BoxId,
}

/// How well a shell fits a call: by the length of what fits.
type Fit = usize;

impl Posted {
    pub(super) fn new(id: BoxId, agent: ProcessKey, texts: &[String]) -> Self {
        let texts = texts.iter().map(|text| squash(text)).filter(|text| !text.is_empty()).collect();
        let call = Call { agent, texts, is_starting: true, is_finished: false };
        with_board(|board| board.calls.insert(id, call));
        Self { id }
    }

    /// Takes a shell with this command line, if no other call that still looks for its own fits it better, and
    /// nobody has it.
    pub(super) fn claim(&self, proc: &ProcFs, shell: ProcessKey, words: &[String]) -> bool {
        let line = squash(&words.concat());
        let is_python = words.first().is_some_and(|program| is_python(program));
        with_board(|board| {
            let Some(own) = board.calls.get(&self.id) else { return false };
            let Some(fit) = own.fit(&line, is_python) else { return false };
            let rivals =
                board.calls.iter().filter(|(id, call)| **id != self.id && call.is_starting && call.agent == own.agent);
            if rivals.filter_map(|(_, call)| call.fit(&line, is_python)).any(|other| other > fit) {
                return false;
            }
            if board.claimed.len() > MANY_CLAIMS {
                board.claimed.retain(|key| proc.is_alive(*key));
            }
            board.claimed.insert(shell)
        })
    }

    /// Its shell is found and moved: what is new from now on is of others.
    pub(super) fn has_started(&self) {
        with_board(|board| board.calls.get_mut(&self.id).map(|call| call.is_starting = false));
    }

    /// Whether it is the only call of its agent that is starting.
    pub(super) fn is_alone(&self) -> bool {
        with_board(|board| {
            let Some(own) = board.calls.get(&self.id) else { return false };
            board.calls.values().filter(|call| call.agent == own.agent && call.is_starting).count() <= 1
        })
    }

    pub(super) fn is_finished(&self) -> bool {
        with_board(|board| board.calls.get(&self.id).is_none_or(|call| call.is_finished))
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        with_board(|board| board.calls.remove(&self.id));
    }
}

/// The agent's call is over: its shell is looked for no more. A job whose shell was found goes on.
pub fn finish(id: BoxId) {
    with_board(|board| board.calls.get_mut(&id).map(|call| call.is_finished = true));
}

impl Call {
    fn fit(&self, line: &str, is_python: bool) -> Option<Fit> {
        if self.texts.is_empty() {
            return is_python.then_some(0);
        }
        self.texts.iter().filter(|text| line.contains(text.as_str())).map(String::len).max()
    }
}

fn is_python(program: &str) -> bool {
    program.rsplit('/').next().is_some_and(|name| name.starts_with("python"))
}
