//! Against what scikit-image and Pillow made of the same pictures. The scripts that made them are beside the pictures.

#![expect(clippy::unwrap_used, reason = "in a test that is how a failure shows")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proctor_judge::canvas::{canvas_of, fit};
use proctor_judge::metrics::measure;
use proctor_judge::{Picture, Size};
use serde::Deserialize;

#[derive(Deserialize)]
struct Values {
    ssim: f64,
    psnr: Option<f64>,
    mae: f64,
    mse: f64,
}

#[derive(Deserialize)]
struct Canvases {
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    reference: [u32; 2],
    canvas: [u32; 2],
    placement: Placed,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Placed {
    original: [u32; 2],
    scale: f64,
    size: [u32; 2],
    x: u32,
    y: u32,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn golden<T: serde::de::DeserializeOwned>(folder: &Path) -> T {
    serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap()
}

fn picture(folder: &Path, name: &str) -> Picture {
    Picture::read(&folder.join(name)).unwrap().0
}

fn size([width, height]: [u32; 2]) -> Size {
    Size { width, height }
}

#[test]
fn the_measures_are_those_of_scikit_image() {
    let folder = folder("metrics");
    let cases: BTreeMap<String, Values> = golden(&folder);
    assert_eq!(cases.len(), 12);
    for (name, expected) in cases {
        let pictures = ["a", "b"].map(|which| picture(&folder, &format!("{name}.{which}.png")));
        let found = measure(&pictures[0], &pictures[1]).unwrap();
        let near = |what: &str, found: f64, expected: f64| {
            assert!((found - expected).abs() <= 1e-9, "{name}: {what} {found} instead of {expected}");
        };
        near("SSIM", found.ssim, expected.ssim);
        near("MAE", found.mae, expected.mae);
        near("MSE", found.mse, expected.mse);
        assert_eq!(found.psnr.is_some(), expected.psnr.is_some(), "{name}");
        near("PSNR", found.psnr.unwrap_or(0.0), expected.psnr.unwrap_or(0.0));
    }
}

#[test]
fn the_canvas_is_that_of_the_rule_and_its_bytes_are_pillows() {
    let folder = folder("canvas");
    let canvases: Canvases = golden(&folder);
    assert_eq!(canvases.cases.len(), 14);
    for (name, case) in canvases.cases {
        let canvas = canvas_of(size(case.reference));
        assert_eq!(canvas, size(case.canvas), "{name}");
        let (fitted, placement) = fit(&picture(&folder, &format!("{name}.in.png")), canvas);
        let found = Placed {
            original: [placement.original.width, placement.original.height],
            scale: placement.scale,
            size: [placement.size.width, placement.size.height],
            x: placement.x,
            y: placement.y,
        };
        assert_eq!(found, case.placement, "{name}");
        let expected = picture(&folder, &format!("{name}.out.png"));
        let unequal = fitted.rgb().iter().zip(expected.rgb()).filter(|(one, other)| one != other).count();
        assert_eq!((fitted.size(), unequal), (expected.size(), 0), "{name}");
    }
    let reference = picture(&folder, "long-reference.reference.in.png");
    let (fitted, _) = fit(&reference, canvas_of(reference.size()));
    assert_eq!(fitted, picture(&folder, "long-reference.reference.png"));
}
