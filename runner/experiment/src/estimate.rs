//! What a run will cost: figures of a pilot, times the trials that are planned.

use std::collections::BTreeMap;

use proctor_store::MethodId;
use serde::Serialize;

use crate::experiment::{Experiment, Method, Price, Track};
use crate::value::Usd;

/// What trials of some methods took and used. From a small run of the same methods, or from the run itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pilot {
    /// Figures by method. Those of a method that is not here are unknown.
    pub methods: BTreeMap<MethodId, PilotFigures>,
}

/// Means over the executed trials of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PilotFigures {
    /// How many there were, at least one.
    pub trials: u64,
    /// Seconds that a trial occupied its room: the agent's time and what is before and after it.
    pub seconds: f64,
    /// Prompt tokens, the cached ones included.
    pub input_tokens: f64,
    /// Prompt tokens that came from the provider's cache.
    pub cached_input_tokens: f64,
    /// Generated tokens.
    pub output_tokens: f64,
}

/// Trials still to be run, by method.
pub type TrialCounts = BTreeMap<MethodId, u64>;

/// What is to be expected of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// By method, in the order of the plan.
    pub methods: Vec<MethodEstimate>,
    /// Of the methods with figures: prompt and generated tokens.
    pub tokens: f64,
    /// Of the methods with figures and prices, in US dollars; none if there is no such method.
    pub cost: Option<f64>,
    /// Hours at the planned concurrency, at least: of the methods with figures; none if there is no such method.
    pub hours: Option<f64>,
    /// Methods with trials of which there are no figures.
    pub without_figures: Vec<MethodId>,
    /// Methods with figures whose model has no price.
    pub without_price: Vec<MethodId>,
}

/// What is to be expected of a method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodEstimate {
    /// The method.
    pub method: MethodId,
    /// Trials to be run.
    pub trials: u64,
    /// Trials that the figures come from.
    pub pilot_trials: u64,
    /// Prompt and generated tokens.
    pub tokens: Option<f64>,
    /// In US dollars.
    pub cost: Option<f64>,
    /// Hours in rooms, one after the other.
    pub room_hours: Option<f64>,
}

/// What `trials` will take and use if they are as the pilot's were.
///
/// Hours are the least that every bound allows: all work over all places, the work of each provider and each method over
/// theirs, the starts at their interval. Memory and the end of a run, when places are empty, make it longer.
pub fn estimate(experiment: &Experiment, trials: &TrialCounts, pilot: &Pilot) -> Estimate {
    let mut estimate = Estimate {
        methods: Vec::new(),
        tokens: 0.0,
        cost: None,
        hours: None,
        without_figures: Vec::new(),
        without_price: Vec::new(),
    };
    let mut work = Work::default();
    for method in &experiment.methods {
        let count = trials.get(&method.id).copied().unwrap_or_default();
        let figures = pilot.methods.get(&method.id).filter(|figures| figures.trials > 0);
        let mut line = MethodEstimate {
            method: method.id.clone(),
            trials: count,
            pilot_trials: figures.map_or(0, |figures| figures.trials),
            tokens: None,
            cost: None,
            room_hours: None,
        };
        if let Some(figures) = figures {
            let tokens = times(count, figures.input_tokens + figures.output_tokens);
            let seconds = times(count, figures.seconds);
            line.tokens = Some(tokens);
            line.room_hours = Some(seconds / 3600.0);
            line.cost = price(experiment, method).map(|price| times(count, cost(figures, price)));
            estimate.tokens += tokens;
            match line.cost {
                Some(cost) => *estimate.cost.get_or_insert(0.0) += cost,
                None => estimate.without_price.push(method.id.clone()),
            }
            work.add(experiment, method, count, seconds);
        } else if count > 0 {
            estimate.without_figures.push(method.id.clone());
        }
        estimate.methods.push(line);
    }
    estimate.hours = work.hours(experiment);
    estimate
}

/// The price of a method's tokens; nothing where no provider is paid.
fn price(experiment: &Experiment, method: &Method) -> Option<Price> {
    let free = Price { input: Usd::default(), cached_input: Usd::default(), output: Usd::default() };
    match &method.model {
        None => Some(free),
        Some(model) if model.is_script() || model.recording().is_some() => Some(free),
        Some(model) => experiment.prices.get(model).copied(),
    }
}

/// US dollars for one trial.
fn cost(figures: &PilotFigures, price: Price) -> f64 {
    let cached = figures.cached_input_tokens.min(figures.input_tokens);
    let fresh = figures.input_tokens - cached;
    (fresh * price.input.dollars()
        + cached * price.cached_input.dollars()
        + figures.output_tokens * price.output.dollars())
        / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "nobody runs 2^52 trials")]
fn times(count: u64, each: f64) -> f64 {
    count as f64 * each
}

/// Seconds of work, and of whom they are.
#[derive(Default)]
struct Work {
    trials: u64,
    in_rooms: f64,
    longest_method: f64,
    by_provider: BTreeMap<String, f64>,
}

impl Work {
    fn add(&mut self, experiment: &Experiment, method: &Method, trials: u64, seconds: f64) {
        if method.track == Track::Agent {
            // The others take no room.
            self.in_rooms += seconds;
        }
        self.trials += trials;
        let places = method.jobs.unwrap_or(experiment.schedule.jobs).get();
        self.longest_method = self.longest_method.max(seconds / times(places, 1.0));
        if let Some(model) = &method.model {
            *self.by_provider.entry(model.provider().to_owned()).or_default() += seconds;
        }
    }

    fn hours(&self, experiment: &Experiment) -> Option<f64> {
        let schedule = &experiment.schedule;
        let providers = schedule.provider_jobs.iter().map(|(name, jobs)| {
            self.by_provider.get(name).copied().unwrap_or_default() / times(jobs.get(), 1.0)
        });
        let starts = schedule
            .launch_interval
            .map_or(0.0, |interval| times(self.trials.saturating_sub(1), interval.duration().as_secs_f64()));
        let all = self.in_rooms / times(schedule.jobs.get(), 1.0);
        let seconds = providers.chain([all, self.longest_method, starts]).fold(0.0, f64::max);
        (self.trials > 0).then_some(seconds / 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{ExperimentFile, Flags, resolve};

    const FILE: &str = r#"
tasks.paths = ["t"]
[schedule]
jobs = 10
provider_jobs = { openai = 4 }
[[methods]]
id = "paid"
harness = "codex"
model = "openai/gpt"
[[methods]]
id = "slow"
harness = "codex"
model = "zai/glm"
jobs = 1
[[methods]]
id = "control"
harness = "oracle"
[prices."openai/gpt"]
input = 1.25
cached_input = 0.125
output = 10.0
"#;

    fn experiment() -> Experiment {
        let file = ExperimentFile::parse(Path::new("/x/e.toml"), FILE).unwrap();
        resolve(Some(&file), &Flags::default(), Path::new("/")).unwrap().experiment
    }

    fn id(text: &str) -> MethodId {
        MethodId::try_from(text.to_owned()).unwrap()
    }

    fn pilot() -> Pilot {
        let figures = PilotFigures {
            trials: 20,
            seconds: 720.0,
            input_tokens: 1_000_000.0,
            cached_input_tokens: 800_000.0,
            output_tokens: 50_000.0,
        };
        Pilot { methods: BTreeMap::from([(id("paid"), figures), (id("slow"), figures)]) }
    }

    #[test]
    fn tokens_cost_and_hours_by_hand() {
        let trials = TrialCounts::from([(id("paid"), 100), (id("slow"), 10), (id("control"), 5)]);
        let estimate = estimate(&experiment(), &trials, &pilot());
        // 200,000 fresh at 1.25, 800,000 cached at 0.125, 50,000 out at 10: 0.25 + 0.1 + 0.5 dollars each.
        let cost = estimate.methods[0].cost.unwrap();
        assert!((cost - 85.0).abs() < 1e-9, "{cost}");
        assert_eq!(estimate.methods[0].room_hours, Some(20.0));
        assert!((estimate.tokens - 110.0 * 1_050_000.0).abs() < 1.0);
        assert_eq!(estimate.without_price, [id("slow")]);
        assert_eq!(estimate.without_figures, [id("control")]);
        // 20 h of the provider with four places; 2 h of the method with one; 22 h over ten places.
        assert_eq!(estimate.hours, Some(5.0));
    }

    #[test]
    fn a_method_with_one_place_and_starts_one_by_one_may_last_longest() {
        let mut experiment = experiment();
        let trials = TrialCounts::from([(id("paid"), 1), (id("slow"), 50)]);
        assert_eq!(estimate(&experiment, &trials, &pilot()).hours, Some(10.0));
        experiment.schedule.launch_interval = Some("2h".parse().unwrap());
        assert_eq!(estimate(&experiment, &trials, &pilot()).hours, Some(100.0));
    }

    #[test]
    fn nothing_is_known_without_a_pilot() {
        let trials = TrialCounts::from([(id("paid"), 100)]);
        let estimate = estimate(&experiment(), &trials, &Pilot::default());
        assert_eq!((estimate.cost, estimate.hours, estimate.tokens), (None, None, 0.0));
        assert_eq!(estimate.without_figures, [id("paid")]);
    }
}
