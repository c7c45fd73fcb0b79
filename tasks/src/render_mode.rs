//! How a program becomes a picture: the five modes, their settings, and the commands a solver may preview with.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::package::Language;

/// The five rendering modes (VAO-Bench, appendix A.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RenderMode {
    /// A page in a headless browser.
    Html,
    /// A graph laid out by Graphviz.
    Dot,
    /// A script that draws a figure.
    Python,
    /// A LaTeX document with `TikZ`, pgfplots or chemfig drawings.
    Tikz,
    /// A LaTeX document with a circuit.
    Circuitikz,
}

impl RenderMode {
    /// All modes, in the order of the paper's tables.
    pub const ALL: [Self; 5] = [Self::Html, Self::Dot, Self::Tikz, Self::Circuitikz, Self::Python];

    /// The word for it in task files, on the command line and in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Dot => "dot",
            Self::Python => "python",
            Self::Tikz => "tikz",
            Self::Circuitikz => "circuitikz",
        }
    }

    /// The extension of its programs, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Dot => "dot",
            Self::Python => "py",
            Self::Tikz | Self::Circuitikz => "tex",
        }
    }

    /// The name of the file that a solver must leave: `artifact.<extension>`.
    pub const fn artifact_name(self) -> &'static str {
        match self {
            Self::Html => "artifact.html",
            Self::Dot => "artifact.dot",
            Self::Python => "artifact.py",
            Self::Tikz | Self::Circuitikz => "artifact.tex",
        }
    }

    /// The media type of its programs.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html",
            Self::Dot => "text/vnd.graphviz",
            Self::Python => "text/x-python",
            Self::Tikz | Self::Circuitikz => "text/x-tex",
        }
    }

    /// The language of its programs: four for the five modes.
    pub const fn language(self) -> Language {
        match self {
            Self::Html => Language::Html,
            Self::Dot => Language::Dot,
            Self::Python => Language::Python,
            Self::Tikz | Self::Circuitikz => Language::Latex,
        }
    }
}

impl fmt::Display for RenderMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Rendering settings of a task: `[render]` of `task.toml`. The paper's table of resolutions is lost; the defaults are
/// ours and stand in the documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RenderSettings {
    /// Wall-clock limit of one rendering, in seconds (1 to 600).
    #[serde(deserialize_with = "within_600")]
    #[schemars(range(min = 1, max = 600))]
    pub timeout_seconds: u32,
    /// For pages.
    pub html: HtmlSettings,
    /// For graphs.
    pub dot: DotSettings,
    /// For both LaTeX modes.
    pub tex: TexSettings,
    /// For scripts.
    pub python: PythonSettings,
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self {
            timeout_seconds: 60,
            html: HtmlSettings::default(),
            dot: DotSettings::default(),
            tex: TexSettings::default(),
            python: PythonSettings::default(),
        }
    }
}

impl RenderSettings {
    /// The wall-clock limit of one rendering.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.into())
    }
}

/// How a page is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HtmlSettings {
    /// Width of the viewport, in CSS pixels (200 to 4096).
    #[serde(deserialize_with = "a_width")]
    #[schemars(range(min = 200, max = 4096))]
    pub width: u32,
    /// Height of the viewport, in CSS pixels (100 to 4096).
    #[serde(deserialize_with = "a_height")]
    #[schemars(range(min = 100, max = 4096))]
    pub height: u32,
    /// The picture is as tall as the page (at least the viewport), not only the viewport.
    pub full_page: bool,
    /// Device pixels per CSS pixel (1 to 3).
    #[serde(deserialize_with = "a_scale")]
    #[schemars(range(min = 1, max = 3))]
    pub scale: u32,
    /// The tallest full page, in CSS pixels (100 to 16384); the rest is cut.
    #[serde(deserialize_with = "a_height_cap")]
    #[schemars(range(min = 100, max = 16384))]
    pub height_cap: u32,
}

impl Default for HtmlSettings {
    fn default() -> Self {
        Self { width: 1440, height: 900, full_page: true, scale: 1, height_cap: 8000 }
    }
}

/// How a graph is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DotSettings {
    /// Dots per inch (36 to 600).
    #[serde(deserialize_with = "a_resolution")]
    #[schemars(range(min = 36, max = 600))]
    pub dpi: u32,
}

impl Default for DotSettings {
    fn default() -> Self {
        Self { dpi: 144 }
    }
}

/// How a LaTeX document is set; the first page is the picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TexSettings {
    /// Dots per inch (36 to 600).
    #[serde(deserialize_with = "a_resolution")]
    #[schemars(range(min = 36, max = 600))]
    pub dpi: u32,
}

impl Default for TexSettings {
    fn default() -> Self {
        Self { dpi: 200 }
    }
}

/// What a script must leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PythonSettings {
    /// The picture that the script should save, a bare file name. If it saves another PNG instead, that one is taken;
    /// if it saves none, the matplotlib figure that is still open.
    #[serde(deserialize_with = "a_file_name")]
    pub output: String,
    /// Dots per inch of a figure that is still open (36 to 600). What the script saves itself keeps its own.
    #[serde(deserialize_with = "a_resolution")]
    #[schemars(range(min = 36, max = 600))]
    pub dpi: u32,
}

impl Default for PythonSettings {
    fn default() -> Self {
        Self { output: "output.png".to_owned(), dpi: 100 }
    }
}

fn bounded<'de, D: Deserializer<'de>>(
    from: D,
    range: RangeInclusive<u32>,
    unit: &str,
) -> Result<u32, D::Error> {
    let value = i64::deserialize(from)?;
    u32::try_from(value).ok().filter(|value| range.contains(value)).ok_or_else(|| {
        D::Error::custom(format!("{value} is not between {} and {} {unit}", range.start(), range.end()))
    })
}

fn within_600<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    bounded(from, 1..=600, "seconds")
}

fn a_width<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    bounded(from, 200..=4096, "pixels")
}

fn a_height<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    bounded(from, 100..=4096, "pixels")
}

fn a_height_cap<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    bounded(from, 100..=16384, "pixels")
}

fn a_scale<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    bounded(from, 1..=3, "device pixels per pixel")
}

fn a_resolution<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    bounded(from, 36..=600, "dots per inch")
}

fn a_file_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let fits = (1..=64).contains(&name.len()) && !name.starts_with(['.', '-']) && name.bytes().all(plain);
    if fits && std::path::Path::new(&name).extension().is_some_and(|extension| extension == "png") {
        Ok(name)
    } else {
        Err(D::Error::custom("not a bare file name that ends in .png"))
    }
}

/// The picture that [`render_command`] leaves in the workspace.
pub fn preview_name(mode: RenderMode, settings: &RenderSettings) -> &str {
    if mode == RenderMode::Python { &settings.python.output } else { "preview.png" }
}

/// What a solver may run in its workspace to look at its artifact: the tools and options of the canonical renderer, so
/// that for a page without animation the preview is the canonical picture. (One difference: a browser's one-shot
/// screenshot is as tall as its window, not as the page.)
pub fn render_command(mode: RenderMode, settings: &RenderSettings) -> String {
    let artifact = mode.artifact_name();
    match mode {
        RenderMode::Html => {
            let HtmlSettings { width, height, scale, .. } = settings.html;
            format!(
                "chromium --headless --hide-scrollbars --force-device-scale-factor={scale} --disable-lcd-text \
                 --font-render-hinting=none --force-color-profile=srgb --user-data-dir=/tmp/preview \
                 --window-size={width},{height} --screenshot=preview.png {artifact}"
            )
        }
        RenderMode::Dot => format!("dot -Tpng -Gdpi={} {artifact} -o preview.png", settings.dot.dpi),
        RenderMode::Python => format!("MPLBACKEND=Agg python3 {artifact}"),
        RenderMode::Tikz | RenderMode::Circuitikz => format!(
            "pdflatex -interaction=nonstopmode -halt-on-error -no-shell-escape -file-line-error {artifact} \
             && pdftocairo -png -r {} -singlefile artifact.pdf preview",
            settings.tex.dpi
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RenderSettings, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn nothing_said_means_the_documented_defaults() {
        let settings = read("").unwrap();
        assert_eq!(settings, RenderSettings::default());
        assert_eq!((settings.html.width, settings.html.height, settings.html.scale), (1440, 900, 1));
        assert!(settings.html.full_page);
        assert_eq!((settings.dot.dpi, settings.tex.dpi), (144, 200));
    }

    #[test]
    fn one_setting_keeps_the_others() {
        let settings = read("[html]\nwidth = 800\n").unwrap();
        assert_eq!((settings.html.width, settings.html.height), (800, 900));
    }

    #[test]
    fn what_would_hurt_the_renderer_is_refused() {
        for bad in [
            "[html]\nwidth = 0",
            "[html]\nwidth = 100000",
            "[html]\nheight = -1",
            "[html]\nscale = 9",
            "[dot]\ndpi = 100000",
            "timeout_seconds = 0",
            "[python]\noutput = \"../x.png\"",
            "[python]\noutput = \"-x.png\"",
            "[python]\noutput = \"x;id .png\"",
            "[html]\nwidht = 800",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(read("[html]\nwidth = 9").unwrap_err(), "9 is not between 200 and 4096 pixels");
    }

    #[test]
    fn the_artifact_bears_the_extension() {
        for mode in RenderMode::ALL {
            assert_eq!(mode.artifact_name(), format!("artifact.{}", mode.extension()));
            assert!(render_command(mode, &RenderSettings::default()).contains(mode.artifact_name()));
        }
    }
}
