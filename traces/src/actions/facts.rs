//! What is said of a call before any rule is asked: each fact once, with the first thing that spoke for it.

use std::collections::BTreeMap;

/// Something that a call does. Each is one piece of the call, in the sense of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fact {
    /// The whole source was put before the model.
    ViewedSource,
    /// A picture cut from the source was.
    ViewedSourcePart,
    /// A picture with a render of the artifact in it was.
    ViewedRender,
    /// A picture with a render of a draft, or of something that nobody knows, was.
    ViewedDraftRender,
    /// A difference picture was.
    ViewedDifference,
    /// A picture of a calibration file or a modified copy was.
    ViewedTrial,
    /// A picture of a smoke test was.
    ViewedSmoke,
    /// The task was shown.
    ReadTask,
    /// A text says what changes or what stays.
    StatedScope,
    /// A text says where things are or how they are connected.
    StatedGeometry,
    /// A region of the source was cut into a picture.
    CutSource,
    /// Pixel values or edge positions of the source were read.
    SampledPixels,
    /// Structure or data was derived from the source.
    FoundStructure,
    /// Text was recognised or measured.
    MeasuredText,
    /// Fonts were looked for or tried.
    LookedForFonts,
    /// Renderers, packages or modules were asked for.
    CheckedTools,
    /// A file that says no more than that the renderer works was made or rendered.
    SmokeTest,
    /// A file that is not the answer was written, to be rendered.
    WroteTrial,
    /// Such a file was rendered, or its picture worked on.
    RanTrial,
    /// Values of a parameter were gone through.
    SweptValues,
    /// A renderer was started on the artifact or a verbatim copy.
    RenderedArtifact,
    /// A renderer was started on a draft of it, or on a path that was meant to be it.
    RenderedDraft,
    /// A renderer was started on the artifact with one option after another.
    RenderedInSweep,
    /// Source and render were put into one picture.
    JoinedPictures,
    /// A render was compared with the source or another render by number.
    ComparedPixels,
    /// The text of the answer was shown.
    ReadAnswer,
    /// The answer was checked.
    CheckedAnswer,
    /// It was seen that the answer exists.
    FoundAnswer,
    /// The artifact was written or changed.
    ChangedArtifact,
    /// A draft was.
    ChangedDraft,
}

/// The facts of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(BTreeMap<Fact, String>);

impl Facts {
    /// Longest evidence that is kept.
    const EVIDENCE: usize = 120;

    pub(crate) fn note(&mut self, fact: Fact, evidence: &str) {
        self.0.entry(fact).or_insert_with(|| {
            let words = evidence.split_whitespace().take(24).collect::<Vec<_>>().join(" ");
            words.chars().take(Self::EVIDENCE).collect()
        });
    }

    pub(crate) fn has(&self, fact: Fact) -> bool {
        self.0.contains_key(&fact)
    }

    pub(crate) fn evidence(&self, fact: Fact) -> Option<&str> {
        self.0.get(&fact).map(String::as_str)
    }
}
