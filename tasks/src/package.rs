//! `task.toml`: what the solver is told, and what describes the task.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::render_mode::{RenderMode, RenderSettings};

/// The whole of `task.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// What the solver is told.
    pub solver: Solver,
    /// What describes the task; never shown to a solver, not even in a path.
    pub metadata: Metadata,
    /// How its programs become pictures.
    #[serde(default)]
    pub render: RenderSettings,
}

/// What a solver is told, besides the source picture (VAO-Bench, appendix A.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Solver {
    /// The edit that is asked for: concise, naming its object by what can be seen.
    pub instruction: String,
    /// The language of the artifact.
    pub language: Language,
    /// How the artifact will be rendered.
    pub rendering_target: RenderMode,
    /// The libraries, packages or modules that the artifact may use; empty means the language alone.
    #[serde(default)]
    pub allowed_dependencies: Vec<String>,
    /// Files of `public/` that the solver gets, by their path inside the package (`public/logo.png`).
    #[serde(default)]
    pub public_assets: Vec<String>,
}

/// What describes the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// The task's name, which is also its folder's.
    pub id: TaskId,
    /// The suite that scores it.
    pub suite: SuiteId,
    /// What kind of artifact it is.
    pub category: Category,
    /// A finer kind, free text (`pricing_table`).
    pub subtype: String,
    /// One of the names in `operations.toml`.
    pub operation: String,
    /// The scope of coordination that the edit needs.
    pub difficulty: Difficulty,
    /// The source artifact; tasks on the same artifact share it.
    pub source_artifact_id: String,
    /// The batch of sources that it was made in (the paper stratifies its ablation subset by it).
    pub source_batch: String,
    /// The version of the data set.
    pub dataset_version: String,
    /// The licence of the package, as an SPDX expression.
    pub licence: String,
    /// A string that occurs nowhere else, by which the package can be found in training data.
    pub canary: String,
}

/// The suites that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuiteId {
    /// Visual artifact operation: one turn, one picture, scoring points.
    Vao,
}

impl SuiteId {
    /// The word for it in files, paths and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vao => "vao",
        }
    }
}

impl fmt::Display for SuiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The nine categories (VAO-Bench, section 3.4), in the order of the paper's tables 14 to 22.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Business webpages.
    BusinessWebpage,
    /// Pages of scientific documents.
    ScientificDocument,
    /// Interactive data dashboards.
    Dashboard,
    /// Flowcharts and workflow diagrams.
    Flowchart,
    /// System architecture diagrams.
    Architecture,
    /// Circuit and logic diagrams.
    Circuit,
    /// Statistical charts.
    StatisticalChart,
    /// Mathematical and geometric figures.
    MathematicalFigure,
    /// Chemical molecular diagrams.
    ChemicalDiagram,
}

impl Category {
    /// All nine.
    pub const ALL: [Self; 9] = [
        Self::BusinessWebpage,
        Self::ScientificDocument,
        Self::Dashboard,
        Self::Flowchart,
        Self::Architecture,
        Self::Circuit,
        Self::StatisticalChart,
        Self::MathematicalFigure,
        Self::ChemicalDiagram,
    ];

    /// The word for it in files and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BusinessWebpage => "business_webpage",
            Self::ScientificDocument => "scientific_document",
            Self::Dashboard => "dashboard",
            Self::Flowchart => "flowchart",
            Self::Architecture => "architecture",
            Self::Circuit => "circuit",
            Self::StatisticalChart => "statistical_chart",
            Self::MathematicalFigure => "mathematical_figure",
            Self::ChemicalDiagram => "chemical_diagram",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The scope of coordination that an instruction needs (VAO-Bench, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    /// A local label, attribute or state.
    Easy,
    /// A local edit with linked updates.
    Medium,
    /// A rule, threshold, structure or domain relation, with propagation or recomputation.
    Hard,
}

impl Difficulty {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    /// The word for it in files and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }
}

impl fmt::Display for Difficulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The four languages of artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// HTML with CSS, SVG and scripts.
    Html,
    /// The graph language of Graphviz.
    Dot,
    /// Python 3.
    Python,
    /// LaTeX.
    Latex,
}

impl Language {
    /// The word for it in files and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Dot => "dot",
            Self::Python => "python",
            Self::Latex => "latex",
        }
    }

    /// Its name as a reader knows it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Html => "HTML",
            Self::Dot => "Graphviz DOT",
            Self::Python => "Python",
            Self::Latex => "LaTeX",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
