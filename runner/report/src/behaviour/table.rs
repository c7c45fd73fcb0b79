//! Table 4 of the paper, and what goes with it, per method.

use std::collections::BTreeMap;
use std::io::{self, Write};

use proctor_traces::actions::{Action, Phase};
use proctor_traces::{Behaviour, PhaseTimes, TimeUse};
use serde::Serialize;

use super::means::{Term, means};
use super::read::Behaviours;
use crate::accounting::{Coverage, Verdict};
use crate::figures::{Mean, Rate, executed, source};
use crate::report::{Control, control};
use crate::row::{Row, Rows, float};

/// How the agents of one method work.
#[derive(Clone, Debug, Serialize)]
pub struct MethodBehaviour {
    /// The method.
    pub method: String,
    /// Whether it is a control.
    pub control: Option<Control>,
    /// Registered trials.
    pub registered: u64,
    /// Those that were executed to an end of the method's own and left a trace: the episodes of all that follows.
    pub episodes: u64,
    /// Executed trials without a trace.
    pub untraced: u64,
    /// Episodes whose calls have no times: they have no part in shares of time.
    pub untimed: u64,
    /// Normally completed, of all registered.
    pub completed: Rate,
    /// Episodes in which the artifact was written at all.
    pub wrote: Rate,
    /// Episodes in which it was rendered.
    pub rendered: Rate,
    /// Episodes that ended with a call at work.
    pub cut_off: Rate,
    /// Episodes in which the answer was rendered and compared after its last edit.
    pub compared_at_end: Rate,
    /// Means over the episodes by name (docs/behaviour.md).
    pub means: BTreeMap<&'static str, Mean>,
}

/// How the agents of a run work.
#[derive(Clone, Debug, Serialize)]
pub struct BehaviourReport {
    /// Name of the run.
    pub run: String,
    /// Fingerprint of the rules that labelled the calls.
    pub rules: String,
    /// Methods, in the order of the plan.
    pub methods: Vec<MethodBehaviour>,
    /// Why the figures are not final, of a run that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_final: Option<String>,
    /// What is wrong with the files.
    pub problems: Vec<String>,
}

/// A figure: its name and what it takes from an episode.
struct Figure {
    name: &'static str,
    term: fn(&Behaviour) -> Term,
}

const fn count(name: &'static str, term: fn(&Behaviour) -> Term) -> Figure {
    Figure { name, term }
}

/// A count per episode.
#[expect(clippy::unnecessary_wraps, reason = "the form of all terms")]
fn each(count: u64) -> Term {
    Some((float(count), 1.0))
}

/// Milliseconds, of the episodes that have them.
fn when(ms: Option<u64>) -> Term {
    Some((float(ms?), 1.0))
}

/// A part of all the time of the agents.
fn share(it: &Behaviour, part: impl Fn(&TimeUse) -> u64) -> Term {
    Some((float(part(it.time.as_ref()?)), float(it.agent_ms?)))
}

/// The same of the episodes whose model requests are known.
fn model_share(it: &Behaviour, part: impl Fn(&TimeUse) -> u64) -> Term {
    share(it, part).filter(|_| it.time.is_some_and(|time| time.model_seen))
}

/// The time of a phase, with the time that led up to its calls.
fn with_leading(it: &Behaviour, phase: impl Fn(&PhaseTimes) -> u64) -> Term {
    share(it, |time| phase(&time.at_work) + phase(&time.leading))
}

const FIGURES: &[Figure] = &[
    count("calls", |it| each(it.calls)),
    count("inner_calls", |it| each(it.inner_calls)),
    count("sub_agent_calls", |it| each(it.sub_agent_calls)),
    count("other_calls", |it| each(it.other)),
    count("stated", |it| each(it.stated)),
    count("failed_calls", |it| each(it.failed)),
    count("unfinished_calls", |it| each(it.unfinished)),
    count("writes", |it| each(it.writes)),
    count("renders", |it| each(it.renders)),
    count("previews", |it| each(it.previews)),
    count("calibrations", |it| each(it.calibrations)),
    count("versions", |it| it.versions.and_then(each)),
    count("cycles", |it| each(it.cycles)),
    count("agent_s", |it| when(it.agent_ms)),
    count("first_write_s", |it| when(it.first_write_ms)),
    count("first_render_s", |it| when(it.first_render_ms)),
    count("share_understanding", |it| share(it, |time| time.at_work.understanding)),
    count("share_reverse_engineering", |it| share(it, |time| time.at_work.reverse_engineering)),
    count("share_reconstruction", |it| share(it, |time| time.at_work.reconstruction)),
    count("share_comparison", |it| share(it, |time| time.at_work.comparison)),
    count("share_editing", |it| share(it, |time| time.at_work.editing)),
    count("share_other", |it| share(it, |time| time.at_work.other)),
    count("share_model", |it| model_share(it, |time| time.model)),
    count("share_idle", |it| model_share(it, |time| time.idle)),
    count("share_between", |it| share(it, |time| time.model + time.idle)),
    count("led_understanding", |it| with_leading(it, |it| it.understanding)),
    count("led_reverse_engineering", |it| with_leading(it, |it| it.reverse_engineering)),
    count("led_reconstruction", |it| with_leading(it, |it| it.reconstruction)),
    count("led_comparison", |it| with_leading(it, |it| it.comparison)),
    count("led_editing", |it| with_leading(it, |it| it.editing)),
    count("led_other", |it| with_leading(it, |it| it.other)),
    count("led_closing", |it| share(it, |time| time.closing)),
];

/// Name of the mean of calls that carry an action.
pub(super) fn action_name(action: Action) -> &'static str {
    // One for each, for the names of means are not made while it runs.
    const NAMES: [&str; 15] = [
        "action_view_original_image",
        "action_read_task",
        "action_identify_scope",
        "action_crop_regions",
        "action_scan_rgb_boundaries",
        "action_measure_text_boxes",
        "action_analyze_layout",
        "action_find_fonts",
        "action_check_rendering",
        "action_test_parameters",
        "action_render_preview",
        "action_visual_comparison",
        "action_pixel_comparison",
        "action_review_answer",
        "action_edit_answer",
    ];
    NAMES[action as usize]
}

/// The phases in the names of means, with that of calls without an action.
pub(super) fn phase_names() -> [&'static str; 6] {
    let mut names = ["other"; 6];
    for (name, phase) in names.iter_mut().zip(Phase::ALL) {
        *name = phase.as_str();
    }
    names
}

impl BehaviourReport {
    /// Counts what was read; `verdicts` are those of the rows.
    pub fn new(rows: &Rows, verdicts: &[Verdict], behaviours: &Behaviours) -> Self {
        let methods = (0..rows.record.methods.len())
            .map(|method| {
                let mine: Vec<Episode<'_>> = rows
                    .rows
                    .iter()
                    .zip(verdicts)
                    .zip(&behaviours.of)
                    .filter(|((row, _), _)| row.method == method)
                    .map(|((row, verdict), behaviour)| Episode {
                        row,
                        verdict: *verdict,
                        behaviour: behaviour.as_ref(),
                    })
                    .collect();
                MethodBehaviour::of(rows, method, &mine)
            })
            .collect();
        Self {
            run: rows.record.name.clone(),
            rules: proctor_traces::actions::RULES.to_owned(),
            methods,
            not_final: rows.not_final(),
            problems: rows.problems.iter().chain(&behaviours.problems).cloned().collect(),
        }
    }

    /// Every figure in a line of its own.
    pub fn write_csv(&self, to: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record([
            "method",
            "control",
            "figure",
            "numerator",
            "denominator",
            "value",
            "low",
            "high",
        ])?;
        for it in &self.methods {
            let rates = [
                ("completed", &it.completed),
                ("wrote", &it.wrote),
                ("rendered", &it.rendered),
                ("cut_off", &it.cut_off),
                ("compared_at_end", &it.compared_at_end),
            ];
            let controlled = it.control.is_some();
            let method = &it.method;
            for (name, Rate { numerator, denominator, value, interval }) in rates {
                let [low, high] = interval.map_or([None; 2], |it| it.map(Some));
                writer.serialize((method, controlled, name, numerator, denominator, value, low, high))?;
            }
            for (name, Mean { numerator, denominator, value, interval }) in &it.means {
                let [low, high] = interval.map_or([None; 2], |it| it.map(Some));
                writer.serialize((method, controlled, name, numerator, denominator, value, low, high))?;
            }
        }
        writer.flush()
    }
}

/// A registered trial.
struct Episode<'a> {
    row: &'a Row,
    verdict: Verdict,
    behaviour: Option<&'a Behaviour>,
}

impl MethodBehaviour {
    fn of(rows: &Rows, method: usize, registered: &[Episode<'_>]) -> Self {
        let attempts = rows.record.attempts;
        let record = &rows.record.methods[method];
        let executed: Vec<&Episode<'_>> =
            registered.iter().filter(|it| executed(it.row, it.verdict).is_some()).collect();
        let episodes: Vec<(&str, &Behaviour)> =
            executed.iter().filter_map(|it| Some((source(it.row), it.behaviour?))).collect();
        let all = episodes.len() as u64;
        let rate = |holds: fn(&Behaviour) -> bool| {
            Rate::of(episodes.iter().filter(|it| holds(it.1)).count() as u64, all, attempts)
        };
        let completed = registered.iter().filter(|it| it.verdict.coverage == Coverage::Completed).count();
        let mut names: Vec<&'static str> = FIGURES.iter().map(|it| it.name).collect();
        names.extend(Action::ALL.map(action_name));
        let terms = |it: &&Behaviour| {
            let figures = FIGURES.iter().map(|figure| (figure.term)(it));
            let actions = Action::ALL.iter().map(|action| each(it.actions.get(action).copied().unwrap_or(0)));
            figures.chain(actions).collect()
        };
        Self {
            method: record.id.to_string(),
            control: control(&record.harness),
            registered: registered.len() as u64,
            episodes: all,
            untraced: executed.len() as u64 - all,
            untimed: episodes.iter().filter(|it| it.1.time.is_none()).count() as u64,
            completed: Rate::of(completed as u64, registered.len() as u64, attempts),
            wrote: rate(|it| it.first_write_ms.is_some()),
            rendered: rate(|it| it.renders > 0),
            cut_off: rate(|it| it.unfinished > 0),
            compared_at_end: rate(|it| it.compared_at_end),
            means: means(&episodes, &names, terms),
        }
    }
}
