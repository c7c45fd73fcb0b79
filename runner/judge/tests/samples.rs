//! The pixel judge on the sample packages: what must hold of it whatever its constants are.

#![expect(clippy::unwrap_used, reason = "in a test that is how a failure shows")]

use std::path::Path;
use std::sync::LazyLock;

use proctor_judge::pixel::{Findings, PointVerdict, Reason, Reference, Settings};
use proctor_judge::{Picture, Size};
use proctor_tasks::{PointType, Task, discover};

fn tasks() -> Vec<Task> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/samples/vao");
    let tasks = discover(&[samples]).unwrap();
    assert!(tasks.len() >= 14, "{}", tasks.len());
    tasks
}

struct Sample {
    name: String,
    source: Picture,
    target: Picture,
    reference: Reference,
}

impl Sample {
    /// All of them, made once.
    fn all() -> &'static [Self] {
        static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(Sample::load);
        &SAMPLES
    }

    /// Some of them, where all would say the same.
    fn some() -> impl Iterator<Item = &'static Self> {
        Self::all().iter().step_by(3)
    }

    fn load() -> Vec<Self> {
        let read = |path: &Path| Picture::read(path).unwrap().0;
        let sample = |task: Task| Self {
            name: task.id().to_string(),
            source: read(&task.source_picture()),
            target: read(&task.hidden.target_picture),
            reference: Reference::of_task(&task, Settings::default()).unwrap(),
        };
        tasks().into_iter().map(sample).collect()
    }

    fn judge(&self, candidate: &Picture) -> (Findings, Vec<PointVerdict>) {
        self.reference.judge(candidate).unwrap()
    }

    fn has_one_size(&self) -> bool {
        self.source.size() == self.target.size()
    }
}

/// The picture with each pixel made from its own place.
fn drawn(size: Size, colour: impl Fn(usize, usize) -> [u8; 3]) -> Picture {
    let (width, height) = (size.width as usize, size.height as usize);
    let rgb = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).flat_map(|(x, y)| colour(x, y));
    Picture::from_rgb(size, rgb.collect()).unwrap()
}

#[test]
fn the_target_itself_has_full_marks() {
    let mut decided = 0;
    for sample in Sample::all() {
        let (findings, points) = sample.judge(&sample.target);
        let (inside, outside) = (findings.in_box.unwrap(), findings.out_of_box.unwrap());
        assert!(
            (inside.ssim - 1.0).abs() < 1e-12 && (inside.normalised - 1.0).abs() < 1e-12,
            "{}",
            sample.name
        );
        assert!((outside.score - 1.0).abs() < 1e-12 && !findings.blank, "{}", sample.name);
        for point in points {
            assert!(point.satisfied != Some(false), "{}: {point:?}", sample.name);
            decided += usize::from(point.satisfied == Some(true));
        }
    }
    assert!(decided >= 50, "{decided} points of the samples can be decided");
}

#[test]
fn the_unchanged_source_keeps_what_must_stay_and_has_made_no_edit() {
    let mut invariants = 0;
    for sample in Sample::all() {
        let (findings, points) = sample.judge(&sample.source);
        let inside = findings.in_box.unwrap();
        assert!(inside.normalised == 0.0 && inside.ssim < 1.0, "{}: {inside:?}", sample.name);
        for point in points.iter().filter(|it| it.satisfied.is_some()) {
            let must_stay = point.kind == PointType::Invariant;
            assert_eq!(point.satisfied, Some(must_stay), "{}: {point:?}", sample.name);
            invariants += usize::from(must_stay);
        }
        if sample.has_one_size() {
            assert!((findings.out_of_box.unwrap().score - 1.0).abs() < 1e-12, "{}", sample.name);
        }
    }
    assert!(invariants >= 5, "{invariants} invariant points of the samples can be decided");
}

#[test]
fn a_page_with_nothing_on_it_has_nothing() {
    for sample in Sample::some() {
        let size = sample.target.size();
        let third = size.height as usize / 3;
        let pages = [
            Picture::filled(size, [255; 3]),
            Picture::filled(Size { width: 1, height: 1 }, [17, 90, 200]),
            drawn(size, |_, y| if y < third { [30, 60, 90] } else { [250; 3] }),
        ];
        for page in pages {
            let (findings, points) = sample.judge(&page);
            assert!(findings.blank, "{}", sample.name);
            let (inside, outside) = (findings.in_box.unwrap(), findings.out_of_box.unwrap());
            assert_eq!((inside.ssim, inside.normalised, outside.score), (0.0, 0.0, 0.0), "{}", sample.name);
            for point in points {
                assert_ne!(point.satisfied, Some(true), "{}: {point:?}", sample.name);
                assert_eq!(point.satisfied.is_some(), point.reason == Reason::NothingToSee);
            }
        }
    }
}

#[test]
fn which_points_are_decided_does_not_depend_on_the_candidate() {
    for sample in Sample::all() {
        let decided = |points: Vec<PointVerdict>| -> Vec<bool> {
            points.iter().map(|it| it.satisfied.is_some()).collect()
        };
        let of_target = decided(sample.judge(&sample.target).1);
        assert_eq!(of_target, decided(sample.judge(&sample.source).1), "{}", sample.name);
        assert_eq!(of_target, decided(sample.reference.without_picture()), "{}", sample.name);
    }
}

#[test]
fn what_is_shifted_is_neither_right_nor_left_alone() {
    for sample in Sample::some() {
        let size = sample.target.size();
        let (width, pixels) = (size.width as usize, sample.target.pixels());
        let shifted = drawn(size, |x, y| pixels[y * width + (x + width - 4) % width]);
        let (findings, points) = sample.judge(&shifted);
        assert!(findings.in_box.unwrap().normalised < 0.9, "{}: {findings:?}", sample.name);
        assert!(findings.out_of_box.unwrap().score < 0.999, "{}: {findings:?}", sample.name);
        let holding = points.iter().filter(|it| it.satisfied == Some(true)).count();
        assert!(holding < points.len(), "{}", sample.name);
    }
}

#[test]
fn the_edit_alone_and_everything_but_the_edit_are_told_apart() {
    for sample in Sample::some().filter(|it| it.has_one_size()) {
        let size = sample.target.size();
        let width = size.width as usize;
        let (source, target) = (sample.source.pixels(), sample.target.pixels());
        // The edit is right, and everything else has another colour.
        let away = |value: u8| if value > 127 { value - 60 } else { value + 60 };
        let recoloured = drawn(size, |x, y| {
            let at = y * width + x;
            match (source[at] == target[at], target[at]) {
                (true, [r, g, b]) => [r, away(g), away(b)],
                (false, pixel) => pixel,
            }
        });
        let (findings, _) = sample.judge(&recoloured);
        let outside = findings.out_of_box.unwrap();
        assert!(outside.recoloured > 0.3, "{}: {findings:?}", sample.name);
        assert!(outside.score < outside.ssim - 0.15, "{}: {findings:?}", sample.name);
        // The edit was made half: the left half of the picture is the target, the right half the source.
        let halves = [
            drawn(size, |x, y| if x < width / 2 { target[y * width + x] } else { source[y * width + x] }),
            drawn(size, |x, y| if x < width / 2 { source[y * width + x] } else { target[y * width + x] }),
        ];
        let parts = halves.map(|half| sample.judge(&half).0.in_box.unwrap().normalised);
        assert!((0.75..1.05).contains(&(parts[0] + parts[1])), "{}: {parts:?}", sample.name);
    }
}

#[test]
fn a_candidate_of_another_size_is_fitted() {
    for sample in Sample::some() {
        let Size { width, height } = sample.target.size();
        let size = Size { width: 2 * width, height: 2 * height };
        let columns = width as usize;
        let pixels = sample.target.pixels();
        let doubled = drawn(size, |x, y| pixels[y / 2 * columns + x / 2]);
        let (findings, points) = sample.judge(&doubled);
        assert_eq!(findings.candidate.original, size);
        assert!(findings.in_box.unwrap().normalised > 0.9, "{}: {findings:?}", sample.name);
        for point in points {
            assert_ne!(point.satisfied, Some(false), "{}: {point:?}", sample.name);
        }
    }
}
