//! `proctor compare`: two pictures in numbers, and where they differ.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use proctor_judge::canvas::Placement;
use proctor_judge::compare::{Comparison, compare};
use proctor_judge::{Picture, Size};
use proctor_store::write_atomic;

use super::print_json;
use crate::failure::{Failure, chain};

const COMPARE_EXAMPLES: &str = "\
Examples:
  proctor compare hidden/target.png render/output.png
  proctor compare source.png page.png --json --diff diff.png --mask footprint.png

The first is the reference: it is scaled down to at most 1568 pixels on its longest side, and the second is fitted to it,
centred on white. SSIM, PSNR, MAE and MSE are those of scikit-image 0.25.2 with the settings of VAO-Bench.";

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// The reference
    #[arg(value_name = "A.png")]
    reference: PathBuf,
    /// The candidate
    #[arg(value_name = "B.png")]
    candidate: PathBuf,
    /// Where a picture of the differences goes: the candidate in pale grey, what differs in red
    #[arg(long, value_name = "FILE.png")]
    diff: Option<PathBuf>,
    /// Where a mask of the differences goes: white where they differ at all
    #[arg(long, value_name = "FILE.png")]
    mask: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    for output in [&args.diff, &args.mask].into_iter().flatten() {
        if [&args.reference, &args.candidate].into_iter().any(|input| is_same(input, output)) {
            return Err(Failure::input(format!("{}: that is one of the two pictures", output.display())));
        }
    }
    let compared = compare(&read(&args.reference)?, &read(&args.candidate)?)
        .map_err(|error| Failure::input(chain(&error)))?;
    let written = [(&args.diff, compared.differences()), (&args.mask, compared.footprint())];
    for (path, picture) in written.iter().filter_map(|(path, picture)| Some((path.as_ref()?, picture))) {
        let png = picture.to_png().map_err(|error| Failure::internal(chain(&error)))?;
        write_atomic(path, &png)?;
    }
    if args.json {
        print_json(&compared.comparison)?;
    } else {
        print(&compared.comparison);
    }
    Ok(ExitCode::SUCCESS)
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn read(path: &Path) -> Result<Picture, Failure> {
    let read = Picture::read(path);
    read.map(|(picture, _)| picture)
        .map_err(|error| Failure::input(format!("{}: {}", path.display(), chain(&error))))
}

fn print(it: &Comparison) {
    let psnr = it.metrics.psnr.map_or_else(|| "– (equal)".to_owned(), |psnr| format!("{psnr:.2} dB"));
    println!("canvas     {}", it.canvas);
    println!("reference  {}", placed(&it.reference, it.canvas));
    println!("candidate  {}", placed(&it.candidate, it.canvas));
    println!("SSIM       {:.4}", it.metrics.ssim);
    println!("PSNR       {psnr}");
    println!("MAE        {:.5}", it.metrics.mae);
    println!("MSE        {:.5}", it.metrics.mse);
    println!("differ     {} of {} pixels", it.differing_pixels, it.canvas.pixels());
}

/// How a picture lies on the canvas, in words.
fn placed(it: &Placement, canvas: Size) -> String {
    if it.is_exact(canvas) {
        return it.original.to_string();
    }
    let scaled = if it.size == it.original {
        String::new()
    } else {
        format!(", scaled by {:.4} to {}", it.scale, it.size)
    };
    let at = if it.size == canvas { String::new() } else { format!(", at {},{}", it.x, it.y) };
    format!("{}{scaled}{at}", it.original)
}
