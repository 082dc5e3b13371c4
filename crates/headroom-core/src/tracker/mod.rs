//! Boxes for shells that another process, the agent, starts: a box is made and announced first, then the shell is
//! found among the agent's new children, stopped together with whatever it has started by then, moved, and
//! continued. What it starts from then on is born inside.

mod board;
mod call;
mod entering;
mod newcomers;
mod seek;
mod strays;
mod waker;

pub use board::finish;
pub use call::{TrackedCall, squash};
pub use newcomers::Newcomers;
pub use seek::{Tracked, track};
