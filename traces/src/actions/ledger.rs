//! What is known of each file so far in the session, carried from call to call: whose text it is, and what can be seen in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{BitOr, BitOrAssign};
use std::rc::Rc;

/// What can be seen in a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pictures(u16);

impl Pictures {
    pub(crate) const NONE: Self = Self(0);
    /// The source, whole.
    pub(crate) const SOURCE: Self = Self(1);
    /// A region of the source.
    pub(crate) const SOURCE_PART: Self = Self(2);
    /// A render of the artifact.
    pub(crate) const ARTIFACT: Self = Self(4);
    /// A render of a draft.
    pub(crate) const DRAFT: Self = Self(8);
    /// A render of a modified copy.
    pub(crate) const VARIANT: Self = Self(16);
    /// A render of a calibration file.
    pub(crate) const TRIAL: Self = Self(32);
    /// A render of a smoke test.
    pub(crate) const SMOKE: Self = Self(64);
    /// A difference.
    pub(crate) const DIFFERENCE: Self = Self(128);
    /// Either form of the source.
    pub(crate) const ANY_SOURCE: Self = Self(3);
    /// Renders of the answer.
    pub(crate) const ANSWER: Self = Self(12);
    /// Renders of what is not the answer.
    pub(crate) const TRIALS: Self = Self(48);
    /// All renders.
    pub(crate) const RENDERS: Self = Self(60);

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether anything of `other` is in it.
    pub(crate) fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// A region of what it shows.
    pub(crate) fn part(self) -> Self {
        if self.any(Self::SOURCE) { Self(self.0 & !Self::SOURCE.0) | Self::SOURCE_PART } else { self }
    }

    /// How many different things are in it.
    pub(crate) fn sides(self) -> u32 {
        u32::from(self.any(Self::ANY_SOURCE)) + (self.0 & Self::RENDERS.0).count_ones()
    }
}

impl BitOr for Pictures {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Pictures {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Whose text a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Text {
    Task,
    Artifact,
    /// The artifact, byte by byte.
    Copy,
    Draft,
    /// The answer with other values, to see what they do.
    Variant,
    /// A calibration file.
    Trial,
    Smoke,
    Note,
    Script,
    Other,
}

impl Text {
    /// The answer or a draft of it.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Self::Artifact | Self::Copy | Self::Draft)
    }

    /// What is to be seen in a render of it.
    pub(crate) fn render(self) -> Pictures {
        match self {
            Self::Artifact | Self::Copy => Pictures::ARTIFACT,
            Self::Draft => Pictures::DRAFT,
            Self::Variant => Pictures::VARIANT,
            Self::Trial => Pictures::TRIAL,
            Self::Smoke => Pictures::SMOKE,
            Self::Task | Self::Note | Self::Script | Self::Other => Pictures::NONE,
        }
    }
}

/// What is known of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) text: Option<Text>,
    pub(crate) pictures: Pictures,
    pub(crate) content: Option<Rc<str>>,
}

/// All files that were met.
#[derive(Debug)]
pub(crate) struct Ledger {
    files: BTreeMap<String, Known>,
    pub(crate) artifact: String,
    root: String,
    kept: usize,
    /// Files of which the artifact was made at some time.
    pub(crate) drafts: BTreeSet<String>,
    /// Size of the longest text of the answer.
    pub(crate) longest: usize,
}

impl Ledger {
    const MOST_FILES: usize = 4096;
    const CONTENT_CAP: usize = 256 << 10;
    const ALL_CONTENT: usize = 16 << 20;

    pub(crate) fn new(artifact: &str, root: Option<&str>, drafts: BTreeSet<String>) -> Self {
        let root = root.unwrap_or("/work").trim_end_matches('/').to_owned();
        let mut ledger =
            Self { files: BTreeMap::new(), artifact: artifact.to_owned(), root, kept: 0, drafts, longest: 0 };
        ledger.put("source.png", Known { pictures: Pictures::SOURCE, ..Known::default() });
        ledger.put("TASK.md", Known { text: Some(Text::Task), ..Known::default() });
        ledger
    }

    /// A path as the ledger names it: relative to the workspace where it lies in it, without `.` and `..`.
    pub(crate) fn resolve(&self, cwd: &str, path: &str) -> String {
        // Most are the plain name of a file of the workspace.
        let inside = path.strip_prefix(self.root.as_str()).and_then(|it| it.strip_prefix('/'));
        if let Some(name) = inside.or(Some(path).filter(|_| cwd.is_empty())).filter(|it| is_plain(it)) {
            return name.to_owned();
        }
        let path = path.char_indices().nth(1024).map_or(path, |(end, _)| &path[..end]);
        let path = path.trim_start_matches("file://");
        // What a server of the sandbox gives is what lies in its folder.
        let path = ["http://localhost", "http://127.0.0.1", "http://0.0.0.0"]
            .iter()
            .find_map(|host| path.strip_prefix(host)?.split_once('/'))
            .map_or(path, |(_, inside)| inside);
        let path = if path.contains("://") { path } else { path.split(['?', '#']).next().unwrap_or(path) };
        let joined = if path.starts_with('/') || path.starts_with('~') || cwd.is_empty() {
            path.to_owned()
        } else {
            format!("{cwd}/{path}")
        };
        let full = if joined.starts_with(['/', '~']) { joined } else { format!("{}/{joined}", self.root) };
        let mut parts: Vec<&str> = Vec::new();
        for part in full.split('/').take(64) {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        let clean = parts.join("/");
        let root = self.root.trim_start_matches('/');
        match clean.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) {
            Some(inside) if !full.starts_with('~') => inside.to_owned(),
            _ if clean == root => ".".to_owned(),
            _ if full.starts_with('~') => clean,
            _ => format!("/{clean}"),
        }
    }

    /// What is known of the file, or of all that a pattern matches.
    pub(crate) fn get(&self, path: &str) -> Option<Known> {
        if let Some(known) = self.files.get(path) {
            return Some(known.clone());
        }
        if path == self.artifact {
            return Some(Known { text: Some(Text::Artifact), ..Known::default() });
        }
        let matches = globbing(path).then(|| self.matching(path)).into_iter().flatten();
        let mut found: Option<Known> = None;
        for (_, known) in matches {
            let all = found.get_or_insert_default();
            all.pictures |= known.pictures;
            // What is nearest to the answer decides.
            all.text = match (all.text, known.text) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        found
    }

    fn matching<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = (&'a String, &'a Known)> {
        let fixed = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
        let range = self.files.range(fixed.to_owned()..);
        range
            .take_while(move |(path, _)| path.starts_with(fixed))
            .filter(move |(path, _)| matches_glob(pattern, path))
    }

    pub(crate) fn put(&mut self, path: &str, mut known: Known) {
        if self.files.len() >= Self::MOST_FILES && !self.files.contains_key(path) {
            return;
        }
        let size = known.content.as_ref().map_or(0, |it| it.len());
        if size > Self::CONTENT_CAP || self.kept + size > Self::ALL_CONTENT {
            known.content = None;
        } else {
            self.kept += size;
        }
        if known.text.is_some_and(Text::is_answer) {
            self.longest = self.longest.max(size);
        }
        if known.text == Some(Text::Artifact) {
            // A copy of what the artifact was is none of what it is.
            for other in self.files.values_mut().filter(|it| it.text == Some(Text::Copy)) {
                other.text = Some(Text::Draft);
            }
        }
        if !path.is_empty() && !path.starts_with("/dev/") {
            self.files.insert(path.to_owned(), known);
        }
    }

    pub(crate) fn content(&self, path: &str) -> Option<Rc<str>> {
        self.files.get(path)?.content.clone()
    }

    pub(crate) fn is_artifact(&self, path: &str) -> bool {
        path == self.artifact
    }

    /// The known file that a mistyped path was meant to be.
    pub(crate) fn meant(&self, path: &str) -> Option<Known> {
        let name = file_name(path);
        if name.len() < 5 || globbing(path) {
            return None;
        }
        let extension = name.rsplit('.').next();
        let near = |other: &str| {
            let other = file_name(other);
            other == name || (other.rsplit('.').next() == extension && distance_below_3(name, other))
        };
        if near(&self.artifact) {
            return Some(Known { text: Some(Text::Artifact), ..Known::default() });
        }
        self.files.iter().take(512).find(|(other, _)| near(other)).map(|(_, known)| known.clone())
    }
}

/// Whether a path is the name of a file, and nothing else.
fn is_plain(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=255).contains(&path.len()) && path.bytes().all(is_plain) && !matches!(path, "." | "..")
}

/// Whether a path stands for several.
pub(crate) fn globbing(path: &str) -> bool {
    // A name of which nothing is known stands for no file at all.
    path.contains(['*', '?']) && path.chars().filter(|it| it.is_alphanumeric()).take(3).count() == 3
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The part of a file's name after its last dot, in lower case; empty if there is none.
pub(crate) fn extension(path: &str) -> String {
    written_extension(path).to_ascii_lowercase()
}

/// [`extension`] as it is written.
pub(crate) fn written_extension(path: &str) -> &str {
    match file_name(path).rsplit_once('.') {
        Some((_, ext)) if ext.len() <= 6 && ext.bytes().all(|it| it.is_ascii_alphanumeric()) => ext,
        _ => "",
    }
}

/// `*` and `?` as the shell has them, without backtracking over more than the last star.
fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    if pattern.len() > 512 || text.len() > 512 {
        return false;
    }
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                t += 1;
            }
            Some(c) if *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((star, at)) => {
                    retry = Some((star, at + 1));
                    p = star;
                    t = at + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|it| *it == b'*')
}

/// Whether two short names differ by at most two letters put in, left out or replaced.
fn distance_below_3(a: &str, b: &str) -> bool {
    // A letter has at most four bytes.
    if a.len().abs_diff(b.len()) > 8 {
        return false;
    }
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().take(64).collect(), b.to_lowercase().chars().take(64).collect());
    if a.len().abs_diff(b.len()) > 2 {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (corner + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()] <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_the_workspace() {
        let ledger = Ledger::new("artifact.tex", Some("/work"), BTreeSet::new());
        let of = |cwd: &str, path: &str| ledger.resolve(cwd, path);
        assert_eq!(of("", "/work/a.png"), "a.png");
        assert_eq!(of("draft", "../source.png"), "source.png");
        assert_eq!(of("/tmp/x", "./y.png"), "/tmp/x/y.png");
        assert_eq!(of("", "../../../../etc"), "/etc");
        assert_eq!(of("", "file:///work/artifact.html?x=1"), "artifact.html");
        assert_eq!((of("", "a-1.png"), of("draft", "/work/a_1.png")), ("a-1.png".into(), "a_1.png".into()));
        assert_eq!((of("draft", "a.png"), of("", "/work/..")), ("draft/a.png".into(), "/".into()));
        assert_eq!((of("", "."), of("", "..")), (".".into(), "/".into()));
    }

    #[test]
    fn patterns_match_as_in_a_shell_and_typing_errors_are_seen() {
        assert!(matches_glob("/tmp/v*.png", "/tmp/v16.png"));
        assert!(matches_glob("*a*b*", "xxaxxbxx"));
        assert!(!matches_glob("/tmp/?.png", "/tmp/16.png"));
        assert!(distance_below_3("previw.png", "preview.png"));
        assert!(!distance_below_3("preview.png", "source.png"));
    }
}
