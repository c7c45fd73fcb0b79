//! Fuzzing of everything that reads what an agent, or a person, wrote: session files and streams of every agent, shell and
//! Python in the calls, the streams of running agents, scripts of the scripted model. On stable Rust: a driver that mutates
//! our own fixtures in an order that its seed determines.
//!
//! A plain `cargo test` makes a fixed number of inputs. `make fuzz` goes on for as long as `PROCTOR_FUZZ_SECONDS` says, from a
//! seed that changes with each run; `PROCTOR_FUZZ_SEED` repeats one. The input that fails is kept, and its place told.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "in a test that is how a failure shows, and how much was made"
)]

mod driver;
mod mutate;
mod targets;

use crate::driver::Driver;

#[test]
fn session_files_and_streams() {
    Driver::new("sources", targets::sessions()).run(500, targets::read_session);
}

#[test]
fn a_lost_line_costs_only_the_calls_it_tells_of() {
    Driver::new("lines", targets::sessions()).run(300, targets::lose_a_line);
}

#[test]
fn what_is_no_record_costs_no_call() {
    Driver::new("noise", targets::sessions()).run(200, targets::add_noise);
}

#[test]
fn shell_and_python_in_calls() {
    Driver::new("actions", targets::scripts()).run(300, targets::classify_script);
}

#[test]
fn streams_of_running_agents() {
    Driver::new("harnesses", targets::streams()).run(500, targets::follow_stream);
}

#[test]
fn scripts_of_the_scripted_model() {
    Driver::new("gateway", targets::model_scripts()).run(500, targets::parse_script);
}
