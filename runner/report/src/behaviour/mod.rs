//! How agents work: the paper's Table 4 and Figure 6 of a run, and two methods side by side. `docs/behaviour.md` defines
//! what is counted.

mod choice;
mod means;
mod pairs;
mod picture;
mod read;
mod sheets;
mod strategies;
mod table;

pub use choice::Choice;
pub use pairs::{Comparison, Difference, NoComparison, comparison};
pub use read::{Behaviours, Reading};
pub use strategies::{NoFigure, Strategies};
pub use table::{BehaviourReport, MethodBehaviour};
