//! The commands of each mode. They are those of a solver's preview, so that a preview is the canonical picture.

use proctor_tasks::{RenderMode, RenderSettings};

use crate::room::WORK;

/// Seconds since the epoch that tools are told as their date: 2026-01-01.
pub(crate) const DATE: &str = "1767225600";

/// What to run for one artifact.
pub(crate) struct Plan {
    /// Programs with their arguments, in order; each only if the one before succeeded.
    pub(crate) steps: Vec<Vec<String>>,
    /// Environment beyond the common.
    environment: &'static [(&'static str, &'static str)],
    /// Where the picture then is.
    pub(crate) picture: &'static str,
    /// A file of ours that a step needs: its name and content.
    pub(crate) driver: Option<(&'static str, &'static [u8])>,
}

/// What every tool is told; nothing is inherited from anywhere.
const COMMON: &[(&str, &str)] = &[
    ("PATH", "/opt/py/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/tmp/home"),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("TZ", "UTC"),
    ("SOURCE_DATE_EPOCH", DATE),
];

const TEX: &[(&str, &str)] = &[
    ("TEXMFVAR", "/tmp/texmf"),
    ("FORCE_SOURCE_DATE", "1"),
    // Nothing outside the working directory is read into a picture, nothing is written elsewhere.
    ("openin_any", "p"),
    ("openout_any", "p"),
    // TeX breaks its messages at 79 columns otherwise, in the middle of file names.
    ("max_print_line", "1000"),
];

const PYTHON: &[(&str, &str)] = &[
    ("MPLBACKEND", "Agg"),
    ("MPLCONFIGDIR", "/tmp/mpl"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTHONUNBUFFERED", "1"),
    // Sums over several threads depend on who comes first.
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("NUMEXPR_NUM_THREADS", "1"),
];

impl Plan {
    pub(crate) fn of(mode: RenderMode, settings: &RenderSettings) -> Self {
        match mode {
            RenderMode::Tikz | RenderMode::Circuitikz => Self::tex(settings.tex.dpi),
            RenderMode::Python => Self::python(&settings.python.output, settings.python.dpi),
            // Pages never come here; a graph is what is left.
            RenderMode::Dot | RenderMode::Html => Self::dot(settings.dot.dpi),
        }
    }

    fn dot(dpi: u32) -> Self {
        let resolution = format!("-Gdpi={dpi}");
        Self {
            steps: vec![words(&["dot", "-Tpng", &resolution, "artifact.dot", "-o", "preview.png"])],
            environment: &[],
            picture: "/work/preview.png",
            driver: None,
        }
    }

    fn tex(dpi: u32) -> Self {
        let dpi = dpi.to_string();
        let set = [
            "pdflatex",
            "-interaction=nonstopmode",
            "-halt-on-error",
            "-no-shell-escape",
            "-file-line-error",
            "artifact.tex",
        ];
        let draw = [
            "pdftocairo",
            "-png",
            "-r",
            &dpi,
            "-f",
            "1",
            "-l",
            "1",
            "-singlefile",
            "artifact.pdf",
            "preview",
        ];
        Self {
            steps: vec![words(&set), words(&draw)],
            environment: TEX,
            picture: "/work/preview.png",
            driver: None,
        }
    }

    fn python(output: &str, dpi: u32) -> Self {
        const RESULT: &str = "/tmp/picture";
        let run = ["python", "/opt/proctor/draw.py", output, &dpi.to_string(), RESULT];
        Self {
            steps: vec![words(&run)],
            environment: PYTHON,
            picture: RESULT,
            driver: Some(("draw.py", include_bytes!("draw.py"))),
        }
    }

    /// The whole environment of each step.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let all = COMMON.iter().chain(self.environment).chain(&[("PWD", WORK)]);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_those_of_the_preview() {
        let settings = RenderSettings::default();
        for mode in [RenderMode::Dot, RenderMode::Tikz] {
            let preview = proctor_tasks::render_command(mode, &settings);
            for step in Plan::of(mode, &settings).steps {
                // The preview says nothing of pages: one is all that -singlefile draws.
                let step = step.join(" ").replace("-f 1 -l 1 ", "");
                assert!(preview.contains(&step), "`{step}` is not in `{preview}`");
            }
        }
    }
}
