//! SSIM beside scikit-image, by the wall clock, on two pictures as large as a canvas may be wide.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use proctor_judge::metrics::ssim;
use proctor_judge::{Picture, Size};

use crate::figures::{Aim, Report, Row, Samples};
use crate::{Bench, Outcome, say};

/// Most that ours should take, in times of scikit-image.
const SSIM: f64 = 0.1;

const SIZE: Size = Size { width: 1568, height: 1000 };

/// Reads both pictures, says its version, and then measures once for each line that it is given.
const YARDSTICK: &str = r"
import sys, time
import numpy, skimage
from PIL import Image
from skimage.metrics import structural_similarity

one, other = (numpy.asarray(Image.open(path)).astype(numpy.float64) / 255 for path in sys.argv[1:3])
print(skimage.__version__, flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    value = structural_similarity(one, other, channel_axis=-1, gaussian_weights=True, sigma=1.5,
                                  use_sample_covariance=False, data_range=1.0)
    print((time.perf_counter() - start) * 1000, repr(float(value)), flush=True)
";

pub(crate) fn measure(bench: &Bench, python: &Path, turns: u32, report: &mut Report) -> Outcome<()> {
    let folder = bench.folder("ssim-")?;
    let [one, other] = pictures()?;
    let paths = ["one.png", "other.png"].map(|name| folder.join(name));
    for (picture, path) in [&one, &other].into_iter().zip(&paths) {
        std::fs::write(path, picture.to_png()?)?;
    }
    let Ok(mut yardstick) = Yardstick::start(python, &paths) else {
        say("ssim: left out; give --python a Python with scikit-image 0.25.2 and Pillow");
        return Ok(());
    };
    say(&format!("ssim beside scikit-image {}", yardstick.version));
    let (mut bare, mut ours) = (Samples::default(), Samples::default());
    let mut apart = 0.0_f64;
    // The first of each is not counted.
    for turn in 0..=turns {
        let (took, expected) = yardstick.measure()?;
        let start = Instant::now();
        let found = ssim(&one, &other)?;
        let elapsed = start.elapsed();
        apart = apart.max((found - expected).abs());
        if turn > 0 {
            bare.push(took);
            ours.push_ms(elapsed);
        }
    }
    yardstick.end()?;
    report.add(Row {
        what: format!("ssim of {SIZE}, beside scikit-image {}", yardstick.version),
        unit: "ms",
        bare: Some(bare),
        ours,
        aim: Some(Aim::Ratio(SSIM)),
        remark: format!("values differ by {apart:.1e}"),
    });
    Ok(())
}

/// A picture with gradients and noise, and one that is a bit different everywhere.
fn pictures() -> Outcome<[Picture; 2]> {
    let value = |at: u32, seed: u32| {
        let [noise, ..] = (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13).to_le_bytes();
        let [slope, ..] = (at / 3 % SIZE.width * 190 / SIZE.width).to_le_bytes();
        slope + noise % 60
    };
    let count = SIZE.width * SIZE.height * 3;
    let picture = |seed: u32| {
        let rgb = (0..count).map(|at| value(at, seed)).collect();
        Picture::from_rgb(SIZE, rgb).ok_or("a picture of another size")
    };
    Ok([picture(0)?, picture(40_503)?])
}

/// A Python that measures when it is told to.
struct Yardstick {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    version: String,
}

impl Yardstick {
    fn start(python: &Path, pictures: &[std::path::PathBuf; 2]) -> Outcome<Self> {
        let mut child = Command::new(python)
            .args(["-c", YARDSTICK])
            .args(pictures)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut yardstick = Self { child, to, from, version: String::new() };
        yardstick.version = yardstick.line()?;
        Ok(yardstick)
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            self.child.wait()?;
            return Err("the Python of the yardstick has ended".into());
        }
        Ok(line.trim().to_owned())
    }

    /// Milliseconds, and the value.
    fn measure(&mut self) -> Outcome<(f64, f64)> {
        if let Some(to) = &mut self.to {
            to.write_all(b"\n")?;
        }
        let line = self.line()?;
        let (took, value) = line.split_once(' ').ok_or("the yardstick said something else")?;
        Ok((took.parse()?, value.parse()?))
    }

    fn end(&mut self) -> Outcome<()> {
        self.to = None;
        self.child.wait()?;
        Ok(())
    }
}
