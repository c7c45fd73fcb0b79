//! The question in a model's own form, and what becomes of the answer.

use std::fs;
use std::time::Instant;

use proctor_gateway::client::{
    AskError, ModelClient, Part, PictureQuestion, PictureReply, Question, Reply, Stop,
};
use proctor_store::{ArtifactRecord, TryDir};
use proctor_tasks::{Artifact, Language};
use proctor_traces::{ArtifactState, Digest, Ending, EventKind, Source, WireFormat};

use super::blocks::{self, Found};
use super::told::Told;
use crate::method::{Model, Native, Track};
use crate::record::Recorder;
use crate::{EngineError, TrialSpec};

/// Most of a reply that goes into the trace, in bytes; `raw/reply.txt` has all of it.
const TEXT_CAP: usize = 1 << 20;

/// A question, ready to be put.
pub(super) enum Ask {
    Text(WireFormat, Box<Question>),
    Picture(Box<PictureQuestion>),
}

/// What was answered.
pub(super) enum Answer {
    Text(Reply),
    Picture(PictureReply),
}

impl Ask {
    /// What the method of `spec` asks.
    pub(super) fn new(spec: &TrialSpec, told: &Told) -> Result<Self, EngineError> {
        let model = spec.method.model.as_ref().ok_or(EngineError::Broken { part: "a model" })?;
        match &spec.method.track {
            Track::Native(native) => Ok(Self::Text(native.wire, Box::new(question(model, native, told)))),
            Track::Direct(direct) => Ok(Self::Picture(Box::new(PictureQuestion {
                endpoint: direct.endpoint,
                model: model.name.clone(),
                prompt: told.text.clone(),
                picture: told.picture.clone().into(),
                extra: direct.request.clone(),
            }))),
            Track::Agent(_) => Err(EngineError::Broken { part: "a question" }),
        }
    }

    /// In which words it is put.
    pub(super) fn wire(&self) -> WireFormat {
        match self {
            Self::Text(wire, _) => *wire,
            Self::Picture(_) => WireFormat::OpenaiImages,
        }
    }

    /// Puts it.
    pub(super) async fn put(&self, client: &ModelClient) -> Result<Answer, AskError> {
        match self {
            Self::Text(_, question) => client.ask(question).await.map(Answer::Text),
            Self::Picture(question) => client.picture(question).await.map(Answer::Picture),
        }
    }
}

fn question(model: &Model, native: &Native, told: &Told) -> Question {
    Question {
        model: model.name.clone(),
        system: None,
        parts: vec![
            Part::Picture { media_type: "image/png", bytes: told.picture.clone().into() },
            Part::Text(told.text.clone()),
        ],
        max_output_tokens: native.max_output_tokens,
        reasoning: native.reasoning.clone(),
        form: None,
        limit_field: native.limit_field,
        extra: native.request.clone(),
    }
}

/// Where an answer is kept.
pub(super) struct Place<'a> {
    pub(super) spec: &'a TrialSpec,
    pub(super) evidence: &'a TryDir,
    pub(super) recorder: &'a Recorder,
    /// When it was there.
    pub(super) end: Instant,
}

impl Answer {
    /// Keeps it and the artifact in it, and says how the try ended.
    pub(super) fn keep(self, place: &Place<'_>) -> Result<(ArtifactRecord, Ending), EngineError> {
        match self {
            Self::Text(reply) => place.text(&reply),
            Self::Picture(reply) => place.picture(&reply),
        }
    }
}

impl Place<'_> {
    /// The record of an artifact that is not there.
    pub(super) fn nothing(&self) -> ArtifactRecord {
        let name = match self.spec.method.track {
            Track::Direct(_) => Artifact::PICTURES[0].0.to_owned(),
            Track::Native(_) | Track::Agent(_) => self.artifact().name,
        };
        record(name, ArtifactState::Missing)
    }

    fn artifact(&self) -> Artifact {
        Artifact::program(self.spec.task.mode())
    }

    fn text(&self, reply: &Reply) -> Result<(ArtifactRecord, Ending), EngineError> {
        self.write("raw", "reply.txt", reply.text.as_bytes())?;
        let text = cut(&reply.text, TEXT_CAP).to_owned();
        self.recorder.event(self.end, Source::Gateway, EventKind::AgentText { text });
        if let Some(model) = &reply.served_model {
            self.recorder.notice(format!("answered by {model}"));
        }
        let tags = tags(self.spec.task.solver.language);
        let found = blocks::program(&reply.text, tags, reply.stop == Stop::Length);
        match found {
            Found::Program(program, remark) => {
                if let Some(remark) = remark {
                    self.recorder.notice(format!("the program in the reply: {remark}"));
                }
                let artifact = self.artifact();
                let state = self.keep(&artifact.name, program.as_bytes(), artifact.size_cap)?;
                let ending = match state {
                    ArtifactState::Present { .. } => Ending::Completed,
                    _ => Ending::NoArtifact,
                };
                Ok((record(artifact.name, state), ending))
            }
            Found::Nothing(_) if reply.stop == Stop::Refusal => {
                let said = cut(reply.text.trim(), 400);
                Ok((self.nothing(), Ending::AgentError { message: format!("the model refused: {said}") }))
            }
            Found::Nothing(why) => {
                self.recorder.notice(why);
                Ok((self.nothing(), Ending::NoArtifact))
            }
        }
    }

    /// Keeps a returned picture as it is. What it shows, and whether it can be unpacked at all, is seen when it is taken over
    /// as the trial's rendering, under limits.
    fn picture(&self, reply: &PictureReply) -> Result<(ArtifactRecord, Ending), EngineError> {
        let bytes = match &reply.picture {
            Ok(bytes) => bytes,
            Err(why) => {
                self.recorder.notice(why);
                return Ok((self.nothing(), Ending::NoArtifact));
            }
        };
        let Some(name) = picture_name(bytes) else {
            self.write("raw", "reply.bin", bytes)?;
            self.recorder.notice("what was returned is neither PNG nor JPEG nor WebP");
            return Ok((self.nothing(), Ending::NoArtifact));
        };
        let state = self.keep(name, bytes, Artifact::PICTURE_CAP)?;
        let ending = match state {
            ArtifactState::Present { .. } => Ending::Completed,
            _ => Ending::NoArtifact,
        };
        Ok((record(name.to_owned(), state), ending))
    }

    /// Keeps an artifact as one that an agent left: in `artifacts/`, and as a version of it.
    fn keep(&self, name: &str, bytes: &[u8], cap: u64) -> Result<ArtifactState, EngineError> {
        let size = bytes.len() as u64;
        if size > cap {
            return Ok(ArtifactState::TooLarge { bytes: size });
        }
        let digest = Digest::of(bytes);
        self.write("artifacts", name, bytes)?;
        self.write("history", &digest.hex(), bytes)?;
        self.recorder.event(self.end, Source::Runner, EventKind::ArtifactChanged { digest, bytes: size });
        Ok(ArtifactState::Present { digest, bytes: size })
    }

    fn write(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), EngineError> {
        let path = self.evidence.folder(folder)?.join(name);
        fs::write(&path, bytes).map_err(EngineError::io("writing", &path))
    }
}

/// The record of an artifact of which there was one version, if any.
fn record(name: String, state: ArtifactState) -> ArtifactRecord {
    let versions = u64::from(matches!(state, ArtifactState::Present { .. }));
    ArtifactRecord { name, state, versions, versions_skipped: 0 }
}

/// What a code block in `language` may be marked with: first, as the question says.
fn tags(language: Language) -> &'static [&'static str] {
    match language {
        Language::Html => &["html", "htm", "xhtml"],
        Language::Dot => &["dot", "graphviz", "gv"],
        Language::Python => &["python", "py", "python3"],
        Language::Latex => &["latex", "tex", "tikz", "circuitikz"],
    }
}

/// The name of a returned picture, by its first bytes.
fn picture_name(bytes: &[u8]) -> Option<&'static str> {
    let [png, jpeg, webp] = Artifact::PICTURES.map(|(name, _)| name);
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(png)
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some(jpeg)
    } else {
        let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
        is_webp.then_some(webp)
    }
}

/// The first `cap` bytes of a text, or somewhat fewer.
fn cut(text: &str, cap: usize) -> &str {
    let mut end = text.len().min(cap);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
