//! The rules: which facts make which action, and why. `docs/strategy-actions.md` is the definition that they put into force;
//! an action is carried where one of its facts holds.

use super::Action;
use super::facts::{Fact, Facts};

/// A rule.
pub(crate) struct Rule {
    pub(crate) action: Action,
    /// It speaks where this holds …
    pub(crate) when: Fact,
    /// … and none of these.
    pub(crate) unless: &'static [Fact],
    /// Why, in the words of the guide.
    pub(crate) because: &'static str,
}

const fn rule(action: Action, when: Fact, because: &'static str) -> Rule {
    Rule { action, when, unless: &[], because }
}

/// All rules.
pub(crate) const RULES: &[Rule] = &[
    // Task understanding.
    rule(Action::ViewOriginalImage, Fact::ViewedSource, "the whole source is put before the model"),
    rule(Action::ReadTask, Fact::ReadTask, "the task is shown"),
    rule(Action::IdentifyScope, Fact::StatedScope, "its own text says what changes or stays"),
    // Visual reverse engineering.
    rule(Action::CropRegions, Fact::CutSource, "a region of the source is cut out"),
    rule(Action::CropRegions, Fact::ViewedSourcePart, "a crop of the source is opened"),
    rule(Action::ScanRgbBoundaries, Fact::SampledPixels, "pixel values or edges of the source are read"),
    rule(Action::MeasureTextBoxes, Fact::MeasuredText, "text is recognised or measured"),
    rule(Action::AnalyzeLayout, Fact::FoundStructure, "structure or data is derived from the source"),
    rule(Action::AnalyzeLayout, Fact::StatedGeometry, "worked-out geometry is written down"),
    // Reconstruction and tuning.
    rule(Action::FindFonts, Fact::LookedForFonts, "fonts are looked for or tried"),
    rule(Action::CheckRendering, Fact::CheckedTools, "renderers, packages or modules are asked for"),
    rule(Action::CheckRendering, Fact::SmokeTest, "a smoke test of the renderer"),
    rule(Action::CheckRendering, Fact::ViewedSmoke, "the picture of a smoke test is opened"),
    rule(Action::TestParameters, Fact::WroteTrial, "a calibration file is written"),
    rule(Action::TestParameters, Fact::RanTrial, "a calibration file is drawn or measured"),
    rule(Action::TestParameters, Fact::SweptValues, "values of a parameter are gone through"),
    rule(Action::TestParameters, Fact::ViewedTrial, "a calibration picture is opened"),
    // Rendering and comparison.
    rule(Action::RenderPreview, Fact::RenderedArtifact, "a renderer is started on the artifact"),
    rule(Action::RenderPreview, Fact::RenderedDraft, "a renderer is started on the answer"),
    rule(Action::VisualComparison, Fact::ViewedRender, "a render of the artifact is looked at"),
    rule(Action::VisualComparison, Fact::ViewedDraftRender, "a render of the answer is looked at"),
    rule(Action::VisualComparison, Fact::ViewedDifference, "a difference picture is opened"),
    rule(Action::VisualComparison, Fact::JoinedPictures, "source and render are put into one picture"),
    rule(Action::PixelComparison, Fact::ComparedPixels, "pictures are compared by number"),
    // Answer review and editing.
    rule(Action::ReviewAnswer, Fact::ReadAnswer, "the text of the answer is read again"),
    rule(Action::ReviewAnswer, Fact::CheckedAnswer, "the answer is checked"),
    Rule {
        action: Action::ReviewAnswer,
        when: Fact::FoundAnswer,
        // Beside the work itself it is only a look at what was made.
        unless: &[
            Fact::ChangedArtifact,
            Fact::ChangedDraft,
            Fact::RenderedArtifact,
            Fact::RenderedDraft,
            Fact::RenderedInSweep,
            Fact::SweptValues,
        ],
        because: "the answer is seen to exist",
    },
    rule(Action::EditAnswer, Fact::ChangedArtifact, "the artifact is written or changed"),
    rule(Action::EditAnswer, Fact::ChangedDraft, "a draft of the answer is written or changed"),
];

/// The rules that speak, with what they rest on.
pub(crate) fn apply(facts: &Facts) -> impl Iterator<Item = (&'static Rule, String)> {
    RULES.iter().filter_map(|rule| {
        let evidence = facts.evidence(rule.when)?;
        (!rule.unless.iter().any(|it| facts.has(*it))).then(|| (rule, evidence.to_owned()))
    })
}
