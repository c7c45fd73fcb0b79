//! How different two colours look: CIEDE2000 (Sharma, Wu and Dalal, 2005), from sRGB under D65.

use std::sync::LazyLock;

/// A colour in CIE L\*a\*b\*.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lab {
    l: f64,
    a: f64,
    b: f64,
}

/// Linear light of each byte of sRGB (IEC 61966-2-1).
static LINEAR: LazyLock<[f64; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let value = crate::float(byte) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
});

/// White of D65, in the units of the matrix below.
const WHITE: [f64; 3] = [0.950_47, 1.0, 1.088_83];

#[expect(clippy::many_single_char_names, reason = "the names that the standards give them")]
impl From<[u8; 3]> for Lab {
    fn from(pixel: [u8; 3]) -> Self {
        let [r, g, b] = pixel.map(|byte| LINEAR[usize::from(byte)]);
        let [x, y, z] = [
            0.412_456_4 * r + 0.357_576_1 * g + 0.180_437_5 * b,
            0.212_672_9 * r + 0.715_152_2 * g + 0.072_175 * b,
            0.019_333_9 * r + 0.119_192 * g + 0.950_304_1 * b,
        ];
        let f = |value: f64| {
            if value > 216.0 / 24_389.0 { value.cbrt() } else { (24_389.0 / 27.0 * value + 16.0) / 116.0 }
        };
        let [x, y, z] = [f(x / WHITE[0]), f(y / WHITE[1]), f(z / WHITE[2])];
        Self { l: 116.0 * y - 16.0, a: 500.0 * (x - y), b: 200.0 * (y - z) }
    }
}

/// ΔE00; 1 is about what can just be seen.
#[expect(clippy::many_single_char_names, reason = "the names that the paper gives them")]
pub(crate) fn difference(one: Lab, other: Lab) -> f64 {
    let chroma = |lab: Lab| lab.a.hypot(lab.b);
    let mean = f64::midpoint(chroma(one), chroma(other)).powi(7);
    let g = 0.5 * (1.0 - (mean / (mean + 25.0_f64.powi(7))).sqrt());
    let [one, other] = [one, other].map(|lab| Lab { a: lab.a * (1.0 + g), ..lab });
    let (c1, c2) = (chroma(one), chroma(other));
    let hue = |lab: Lab| {
        let angle = lab.b.atan2(lab.a).to_degrees();
        if angle < 0.0 { angle + 360.0 } else { angle }
    };
    let (h1, h2) = (hue(one), hue(other));
    let grey = c1 * c2 == 0.0;
    let turn = match h2 - h1 {
        _ if grey => 0.0,
        turn if turn > 180.0 => turn - 360.0,
        turn if turn < -180.0 => turn + 360.0,
        turn => turn,
    };
    let (dl, dc) = (other.l - one.l, c2 - c1);
    let dh = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin();
    let (l, c) = (f64::midpoint(one.l, other.l), f64::midpoint(c1, c2));
    let h = match h1 + h2 {
        sum if grey => sum,
        sum if (h1 - h2).abs() <= 180.0 => sum / 2.0,
        sum if sum < 360.0 => f64::midpoint(sum, 360.0),
        sum => f64::midpoint(sum, -360.0),
    };
    let cos = |degrees: f64| degrees.to_radians().cos();
    let t = 1.0 - 0.17 * cos(h - 30.0) + 0.24 * cos(2.0 * h) + 0.32 * cos(3.0 * h + 6.0)
        - 0.2 * cos(4.0 * h - 63.0);
    let from_50 = (l - 50.0).powi(2);
    let (sl, sc, sh) =
        (1.0 + 0.015 * from_50 / (20.0 + from_50).sqrt(), 1.0 + 0.045 * c, 1.0 + 0.015 * c * t);
    let c7 = c.powi(7);
    let around_blue = (-((h - 275.0) / 25.0).powi(2)).exp();
    let rotation = -(60.0 * around_blue).to_radians().sin() * 2.0 * (c7 / (c7 + 25.0_f64.powi(7))).sqrt();
    let (l, c, h) = (dl / sl, dc / sc, dh / sh);
    (l * l + c * c + h * h + rotation * c * h).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the supplementary test data of Sharma, Wu and Dalal (2005), Table 1.
    #[test]
    fn the_published_pairs_have_the_published_differences() {
        for ([l1, a1, b1], [l2, a2, b2], expected) in [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 3.1571, -77.2803], [50.0, 0.0, -82.7485], 2.8615),
            ([50.0, 2.8361, -74.0200], [50.0, 0.0, -82.7485], 3.4412),
            ([50.0, -1.3802, -84.2814], [50.0, 0.0, -82.7485], 1.0000),
            ([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669),
            ([50.0, 2.49, -0.001], [50.0, -2.49, 0.0009], 7.1792),
            ([50.0, 2.49, -0.001], [50.0, -2.49, 0.0011], 7.2195),
            ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
            ([50.0, 2.5, 0.0], [61.0, -5.0, 29.0], 22.8977),
            ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644),
            ([22.7233, 20.0904, -46.6940], [23.0331, 14.9730, -42.5619], 2.0373),
            ([2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082),
        ] {
            let [one, other] = [Lab { l: l1, a: a1, b: b1 }, Lab { l: l2, a: a2, b: b2 }];
            assert!((difference(one, other) - expected).abs() < 5e-5, "{one:?} {other:?}");
            assert!((difference(other, one) - expected).abs() < 5e-5, "{other:?} {one:?}");
        }
    }

    #[test]
    fn white_black_and_red_are_where_they_belong() {
        let near = |pixel: [u8; 3], l: f64, a: f64, b: f64| {
            let lab = Lab::from(pixel);
            assert!(
                (lab.l - l).abs() < 0.01 && (lab.a - a).abs() < 0.01 && (lab.b - b).abs() < 0.02,
                "{lab:?}"
            );
        };
        near([255; 3], 100.0, 0.0, 0.0);
        near([0; 3], 0.0, 0.0, 0.0);
        near([255, 0, 0], 53.24, 80.09, 67.20);
    }
}
