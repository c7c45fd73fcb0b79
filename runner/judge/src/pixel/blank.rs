//! Pages with nothing on them.

use crate::{Picture, float, index};

/// A step between neighbours is an edge if a channel differs by more than this: gradients have none.
const STEP: u8 = 8;

/// What a picture shows, in two numbers: visible steps from left to right, and visible steps downwards. A page of bands
/// has none of the first, one with an empty side bar none of the second.
pub(crate) fn steps(picture: &Picture) -> [usize; 2] {
    let differs = |one: &[u8; 3], other: &[u8; 3]| {
        one.iter().zip(other).any(|(one, other)| one.abs_diff(*other) > STEP)
    };
    let pixels = picture.pixels();
    let along = |row: &[[u8; 3]]| row.windows(2).filter(|it| differs(&it[0], &it[1])).count();
    let below = pixels.get(index(picture.size().width)..).unwrap_or_default();
    [
        picture.rows().map(along).sum(),
        pixels.iter().zip(below).filter(|(one, other)| differs(one, other)).count(),
    ]
}

/// Whether there is next to nothing on a candidate: less than `share` of the target's steps, in one direction or the other.
pub(crate) fn is_blank(candidate: [usize; 2], target: [usize; 2], share: f64) -> bool {
    candidate.iter().zip(target).any(|(found, wanted)| float(*found) < share * float(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;

    #[test]
    fn gradients_and_bands_show_nothing_and_a_dot_shows_something() {
        let size = Size { width: 32, height: 8 };
        let gradient: Vec<u8> = (0..8).flat_map(|_| (0..32_u8).flat_map(|x| [x * 8; 3])).collect();
        assert_eq!(steps(&Picture::from_rgb(size, gradient).unwrap()), [0, 0]);
        let mut dot = Picture::filled(size, [255; 3]);
        assert_eq!(steps(&dot), [0, 0]);
        dot.pixels_mut()[32 + 1] = [0; 3];
        assert_eq!(steps(&dot), [2, 2]);
        dot.pixels_mut()[..64].fill([9; 3]);
        assert_eq!(steps(&dot), [0, 32]);
    }

    #[test]
    fn a_direction_without_steps_is_enough_unless_the_target_has_none_either() {
        assert!(is_blank([4, 900], [100, 100], 0.05));
        assert!(!is_blank([5, 5], [100, 100], 0.05));
        assert!(!is_blank([0, 0], [0, 0], 0.05));
    }
}
