//! Strategy actions: what an agent was doing in each tool call, in the fifteen words of VAO-Bench (Table 3, appendix C.3).
//!
//! `docs/strategy-actions.md` defines them. The way from a call to its actions has three steps: shells, scripts and tools are
//! read without being run ([`shell`], [`python`], [`program`], [`tools`]); what they do to the files of the session becomes
//! facts ([`scene`], [`ledger`], [`facts`]); one table of rules makes actions of facts ([`rules`]). Nothing is guessed from
//! what a call gave back, but whether it took place.

mod facts;
pub mod labeller;
mod ledger;
pub mod measure;
mod patch;
mod program;
mod programs;
mod prose;
mod python;
mod rules;
mod scene;
mod session;
mod shell;
mod stated;
mod tools;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::facts::{Fact, Facts};
use self::ledger::Ledger;
use self::scene::Scene;
use crate::{Call, ToolCallId, Trace};

pub use session::Session;
pub use stated::{StatedActions, stated};

/// A fingerprint of the rules and of all that reads what they are applied to. What was labelled under another one is labelled
/// anew.
pub const RULES: &str = env!("PROCTOR_RULES");

/// Something that an agent does on its way from picture to program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The whole source is looked at.
    ViewOriginalImage,
    /// TASK.md is read.
    ReadTask,
    /// It is said what must change and what must stay.
    IdentifyScope,
    /// Regions of the source are cut out and looked at.
    CropRegions,
    /// Pixel values and edges of the source are read.
    ScanRgbBoundaries,
    /// Text is recognised or measured.
    MeasureTextBoxes,
    /// Structure, connections or data are derived from the source.
    AnalyzeLayout,
    /// Fonts are looked for.
    FindFonts,
    /// It is checked what renderers and packages there are.
    CheckRendering,
    /// Parameters are tried on calibration files or copies.
    TestParameters,
    /// The answer is rendered.
    RenderPreview,
    /// A render of it is looked at.
    VisualComparison,
    /// A render of it is compared by number.
    PixelComparison,
    /// The answer's text is read again or checked.
    ReviewAnswer,
    /// The answer is written or changed.
    EditAnswer,
}

impl Action {
    /// All fifteen, by phases.
    pub const ALL: [Self; 15] = [
        Self::ViewOriginalImage,
        Self::ReadTask,
        Self::IdentifyScope,
        Self::CropRegions,
        Self::ScanRgbBoundaries,
        Self::MeasureTextBoxes,
        Self::AnalyzeLayout,
        Self::FindFonts,
        Self::CheckRendering,
        Self::TestParameters,
        Self::RenderPreview,
        Self::VisualComparison,
        Self::PixelComparison,
        Self::ReviewAnswer,
        Self::EditAnswer,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ViewOriginalImage => "view_original_image",
            Self::ReadTask => "read_task",
            Self::IdentifyScope => "identify_scope",
            Self::CropRegions => "crop_regions",
            Self::ScanRgbBoundaries => "scan_rgb_boundaries",
            Self::MeasureTextBoxes => "measure_text_boxes",
            Self::AnalyzeLayout => "analyze_layout",
            Self::FindFonts => "find_fonts",
            Self::CheckRendering => "check_rendering",
            Self::TestParameters => "test_parameters",
            Self::RenderPreview => "render_preview",
            Self::VisualComparison => "visual_comparison",
            Self::PixelComparison => "pixel_comparison",
            Self::ReviewAnswer => "review_answer",
            Self::EditAnswer => "edit_answer",
        }
    }

    /// Its name for readers.
    pub fn title(self) -> &'static str {
        match self {
            Self::ViewOriginalImage => "View original image",
            Self::ReadTask => "Read task",
            Self::IdentifyScope => "Identify scope",
            Self::CropRegions => "Crop regions",
            Self::ScanRgbBoundaries => "Scan RGB boundaries",
            Self::MeasureTextBoxes => "Measure text boxes",
            Self::AnalyzeLayout => "Analyse layout",
            Self::FindFonts => "Find fonts",
            Self::CheckRendering => "Check rendering",
            Self::TestParameters => "Test parameters",
            Self::RenderPreview => "Render preview",
            Self::VisualComparison => "Visual comparison",
            Self::PixelComparison => "Pixel comparison",
            Self::ReviewAnswer => "Review answer",
            Self::EditAnswer => "Edit answer",
        }
    }

    /// The phase it belongs to.
    pub fn phase(self) -> Phase {
        match self {
            Self::ViewOriginalImage | Self::ReadTask | Self::IdentifyScope => Phase::Understanding,
            Self::CropRegions | Self::ScanRgbBoundaries | Self::MeasureTextBoxes | Self::AnalyzeLayout => {
                Phase::ReverseEngineering
            }
            Self::FindFonts | Self::CheckRendering | Self::TestParameters => Phase::Reconstruction,
            Self::RenderPreview | Self::VisualComparison | Self::PixelComparison => Phase::Comparison,
            Self::ReviewAnswer | Self::EditAnswer => Phase::Editing,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no action.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no strategy action")]
pub struct NoSuchAction(pub String);

impl FromStr for Action {
    type Err = NoSuchAction;

    fn from_str(text: &str) -> Result<Self, NoSuchAction> {
        Self::ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| NoSuchAction(text.to_owned()))
    }
}

/// The five groups of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Task understanding.
    Understanding,
    /// Visual reverse engineering.
    ReverseEngineering,
    /// Reconstruction and tuning.
    Reconstruction,
    /// Rendering and comparison.
    Comparison,
    /// Answer review and editing.
    Editing,
}

impl Phase {
    /// All five, in the order of the paper.
    pub const ALL: [Self; 5] = [
        Self::Understanding,
        Self::ReverseEngineering,
        Self::Reconstruction,
        Self::Comparison,
        Self::Editing,
    ];

    /// Its name in data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Understanding => "understanding",
            Self::ReverseEngineering => "reverse_engineering",
            Self::Reconstruction => "reconstruction",
            Self::Comparison => "comparison",
            Self::Editing => "editing",
        }
    }

    /// Its name for readers, as in appendix C.3.
    pub fn title(self) -> &'static str {
        match self {
            Self::Understanding => "Task understanding",
            Self::ReverseEngineering => "Visual reverse engineering",
            Self::Reconstruction => "Reconstruction and tuning",
            Self::Comparison => "Rendering and comparison",
            Self::Editing => "Answer review and editing",
        }
    }
}

/// What a call did to the file that is to be delivered, as Table 4 counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Designated {
    /// The file was changed or created.
    pub write: bool,
    /// A renderer was started on it or on a verbatim copy.
    pub render: bool,
    /// A picture with a render of it was put before the model.
    pub preview: bool,
}

/// Why a call carries an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The action.
    pub action: Action,
    /// The rule, in words.
    pub because: Cow<'static, str>,
    /// What of the call it rests on.
    pub evidence: String,
}

/// The actions of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallActions {
    /// The call.
    pub call: ToolCallId,
    /// Its actions, by phases; empty where none fits (`other`).
    pub actions: Vec<Action>,
    /// What it did to the designated artifact.
    pub designated: Designated,
    /// A calibration file or modified copy was rendered; counted apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trial_render: bool,
    /// Whether the artifact was written here for the first time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// The actions of every outer call of a trace, in causal order. `artifact` is the path of the designated file; without it, it
/// is told from the calls.
pub fn classify(trace: &Trace, artifact: Option<&str>) -> Vec<CallActions> {
    Session::of_trace(trace, artifact).classify()
}

impl Session<'_> {
    /// The actions of every outer call, in order.
    pub fn classify(&self) -> Vec<CallActions> {
        let artifact = self.artifact.clone().unwrap_or_else(|| session::artifact_of(&self.calls));
        // Which drafts become the artifact is known only at the end; what they are does not wait for it.
        let (labelled, drafts) = self.walk(&artifact, BTreeSet::new());
        if drafts.is_empty() { labelled } else { self.walk(&artifact, drafts).0 }
    }

    fn walk(&self, artifact: &str, drafts: BTreeSet<String>) -> (Vec<CallActions>, BTreeSet<String>) {
        let mut children: HashMap<&ToolCallId, Vec<&Call>> = HashMap::new();
        for call in self.calls.iter().filter(|it: &&Call| !it.is_outer()) {
            if let Some(parent) = &call.parent {
                children.entry(parent).or_default().push(call);
            }
        }
        let mut scene = Scene::new(Ledger::new(artifact, self.root.as_deref(), drafts));
        let mut cwds: BTreeMap<Option<&str>, String> = BTreeMap::new();
        let mut all = Vec::new();
        let mut written = false;
        for call in self.calls.iter().filter(|it| it.is_outer()) {
            scene.facts = Facts::default();
            scene.budget = Scene::BUDGET;
            scene.loops = 0;
            scene.cwd = cwds.get(&call.agent.as_deref()).cloned().unwrap_or_default();
            tools::read(&mut scene, call, children.get(&call.id).map_or(&[], Vec::as_slice));
            cwds.insert(call.agent.as_deref(), std::mem::take(&mut scene.cwd));
            let mut labelled = judged(call, &scene.facts, self.changed.get(&call.id).copied());
            labelled.first = labelled.designated.write && !written;
            written |= labelled.designated.write;
            all.push(labelled);
        }
        (all, scene.became_artifact.into_iter().collect())
    }
}

/// Facts to actions and flags; `changed` is what the watcher of the artifact says, where it says anything.
fn judged(call: &Call, facts: &Facts, changed: Option<bool>) -> CallActions {
    let mut actions = BTreeSet::new();
    let mut reasons = Vec::new();
    for (rule, evidence) in rules::apply(facts) {
        if actions.insert(rule.action) {
            reasons.push(Reason { action: rule.action, because: rule.because.into(), evidence });
        }
    }
    let meant = facts.has(Fact::ChangedArtifact) && tools::took_place(call, Fact::ChangedArtifact);
    let rendered = facts.has(Fact::RenderedArtifact) || facts.has(Fact::RenderedInSweep);
    CallActions {
        call: call.id.clone(),
        actions: actions.into_iter().collect(),
        designated: Designated {
            write: changed.unwrap_or(meant),
            render: rendered && tools::took_place(call, Fact::RenderedArtifact),
            preview: facts.has(Fact::ViewedRender) && tools::showed(call),
        },
        trial_render: facts.has(Fact::RanTrial) || facts.has(Fact::SweptValues),
        first: false,
        reasons,
    }
}

#[cfg(test)]
mod tests;
