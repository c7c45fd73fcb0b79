//! Finds the recorded exchange that a request asks for again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{Method, Uri};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use super::cassette::{Cassette, Recorded, Recording, route};
use super::difference::Difference;
use super::names::Names;
use super::normal::Normal;
use crate::answer::{Answer, Outcome};
use crate::body::{Broken, whole};
use crate::record::Ticket;
use crate::wire::Route;

/// A recording to be played, and how.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The recording.
    pub cassette: Arc<Cassette>,
    /// What a request that differs comes to.
    pub mode: ReplayMode,
}

/// What a request comes to that is none of the recorded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayMode {
    /// An error that shows the difference.
    #[default]
    Strict,
    /// The next recorded response on its route.
    Lenient,
}

impl fmt::Display for ReplayMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Lenient => "lenient",
        })
    }
}

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayTally {
    /// Requests that were answered from the recording.
    pub answered: u64,
    /// Those of them that asked something else than the recorded one.
    pub different: u64,
    /// How the first of these differed.
    pub first_difference: Option<String>,
    /// Recorded exchanges that nobody asked for.
    pub left: u64,
}

/// How many recorded requests a stray one is compared with, to show the one that it is most like.
const COMPARED: usize = 8;

/// A recording that is being played: by one trial, from its beginning.
pub(crate) struct Replayer {
    replay: Replay,
    state: Mutex<State>,
}

struct State {
    given: Vec<bool>,
    names: Names,
    tally: ReplayTally,
}

/// What is found for a request.
#[derive(Debug)]
enum Found<'a> {
    /// The recorded exchange that asked the same.
    Same(&'a Recorded),
    /// The next one on its route, and how it differs.
    Next(&'a Recorded, String),
    /// Nothing: what is said of that.
    Nothing(String),
}

impl Replayer {
    pub(crate) fn new(replay: Replay) -> Self {
        let given = vec![false; replay.cassette.tape.len()];
        Self {
            replay,
            state: Mutex::new(State { given, names: Names::default(), tally: ReplayTally::default() }),
        }
    }

    /// What it came to so far.
    pub(crate) fn tally(&self) -> ReplayTally {
        let state = self.lock();
        let left = state.given.iter().filter(|given| !**given).count() as u64;
        ReplayTally { left, ..state.tally.clone() }
    }

    pub(crate) fn answer(
        &self,
        asked: Route,
        method: &Method,
        uri: &Uri,
        body: &[u8],
        ticket: &Ticket,
    ) -> Outcome {
        if asked == Route::Alive {
            return Outcome::Answer(Answer::json(200, &json!({"status": "ok"})));
        }
        match self.find(&route(method.as_str(), uri.path()), body) {
            Found::Same(recorded) => self.give(recorded),
            Found::Next(recorded, difference) => {
                ticket.diverged(difference);
                self.give(recorded)
            }
            Found::Nothing(message) => {
                ticket.diverged(message.clone());
                Outcome::Answer(Answer::diverged(asked.wire(), message))
            }
        }
    }

    fn give(&self, recorded: &Recorded) -> Outcome {
        match &recorded.reply {
            Recording::Response { status, headers, body, broke } => {
                let end = broke.clone().map(|message| Err(Broken(message)));
                let body = self.lock().names.as_now(body);
                Outcome::Answer(Answer {
                    status: *status,
                    headers: headers.clone(),
                    body: whole(body).chain(stream::iter(end)).boxed(),
                    length: None,
                    failed: None,
                })
            }
            Recording::Dropped | Recording::Unanswered => Outcome::Drop,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Plain values, whole at every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, route: &str, body: &[u8]) -> Found<'_> {
        let tape = &self.replay.cassette.tape;
        let mut state = self.lock();
        let Normal { value: sent, names } = Normal::of(&state.names.as_recorded(body));
        let text = sent.to_string();
        let on_route = || tape.iter().enumerate().filter(|(_, it)| it.route == route);
        let open: Vec<(usize, &Recorded)> =
            on_route().filter(|(index, _)| state.given.get(*index) == Some(&false)).collect();
        let mut give = |index: usize| {
            if let Some(given) = state.given.get_mut(index) {
                *given = true;
            }
            state.tally.answered += 1;
        };
        let same = open.iter().find(|(_, it)| it.asked == text);
        let Some(&(index, recorded)) = same.or(open.first()) else {
            let message = match on_route().count() {
                0 => format!("the replay has no recorded {route}"),
                all => format!("the replay has run out: all {all} recorded responses to {route} were given"),
            };
            return Found::Nothing(message);
        };
        if matches!(recorded.reply, Recording::Unanswered) {
            let id = recorded.id;
            return Found::Nothing(format!(
                "the replay has run out: the recorded trial ended before exchange {id} was answered"
            ));
        }
        if same.is_some() {
            give(index);
            state.names.learn(&recorded.names, &names);
            return Found::Same(recorded);
        }
        match self.replay.mode {
            ReplayMode::Strict => {
                let closest = open.iter().take(COMPARED).filter_map(|(_, it)| compare(it, &sent));
                let closest = closest.min_by_key(|(_, difference)| difference.places);
                let message =
                    closest.map_or_else(String::new, |(id, difference)| said(route, id, &difference));
                Found::Nothing(message)
            }
            ReplayMode::Lenient => {
                give(index);
                let message = compare(recorded, &sent)
                    .map_or_else(String::new, |(id, difference)| said(route, id, &difference));
                state.tally.different += 1;
                state.tally.first_difference.get_or_insert_with(|| message.clone());
                Found::Next(recorded, message)
            }
        }
    }
}

fn compare(recorded: &Recorded, sent: &Value) -> Option<(u64, Difference)> {
    let asked = serde_json::from_str(&recorded.asked).ok()?;
    Some((recorded.id, Difference::between(&asked, sent)?))
}

fn said(route: &str, id: u64, difference: &Difference) -> String {
    format!("the replay diverged from exchange {id} ({route}): {difference}")
}

#[cfg(test)]
mod tests;
