//! One scoring point, decided by its region.

use proctor_tasks::{PixelBox, PointType, Region, RegionPicture, ScoringPoint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Mask, Settings};
use crate::canvas::Placement;
use crate::metrics::SsimMap;
use crate::{Size, float, index};

/// What the judge says of one scoring point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointVerdict {
    /// Its name within the task.
    pub id: String,
    /// What it measures.
    #[serde(rename = "type")]
    pub kind: PointType,
    /// Whether it holds; none if this judge cannot say. That depends on the task alone, never on the candidate.
    pub satisfied: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// Where was looked, on the canvas: left column, top row, columns, rows.
    pub region: Option<[u32; 4]>,
    /// SSIM of target and candidate there.
    pub ssim: Option<f64>,
    /// SSIM of target and source there.
    pub ssim_source: Option<f64>,
    /// The first of these within the footprint alone; none for what must stay.
    pub changed: Option<f64>,
    /// The second within the footprint alone.
    pub changed_source: Option<f64>,
    /// SSIM of source and candidate there, for what must stay and does not look like the target.
    pub kept: Option<f64>,
}

/// Why a point holds, does not, or cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its region looks like the target.
    Similar,
    /// It must stay, and its region looks like the source still, if not like the target: there it has moved.
    Kept,
    /// Its region does not look like the target.
    Different,
    /// Where its region was to change, it is no nearer to the target than the source was.
    Unchanged,
    /// There is no picture, or nothing on it.
    NothingToSee,
    /// It has no region.
    NoRegion,
    /// Its region is not inside the picture that it is about.
    RegionOutside,
    /// What it asks for cannot be seen there: its region has no part in the footprint.
    NoDifference,
}

/// A point with what is known of it before there is a candidate.
pub(super) struct PreparedPoint {
    id: String,
    kind: PointType,
    /// Where to look; or why the point cannot be decided.
    place: Result<Place, Reason>,
}

/// A region, and how the source looks there.
#[derive(Clone, Copy)]
struct Place {
    region: PixelBox,
    ssim_source: f64,
    /// Within the footprint alone, for what must change.
    changed_source: Option<f64>,
}

/// What was measured of a candidate.
pub(super) struct Seen<'a> {
    /// The map of target and candidate.
    pub(super) of_target: &'a SsimMap,
    /// The map of source and candidate, if some point may need it.
    pub(super) of_source: Option<&'a SsimMap>,
    pub(super) footprint: &'a Mask,
}

impl PreparedPoint {
    /// The placements are those of source and target, `of_source` is the map of both.
    pub(super) fn new(
        point: &ScoringPoint,
        [source, target]: [&Placement; 2],
        of_source: &SsimMap,
        footprint: &Mask,
    ) -> Self {
        let place = || {
            let region = point.region.as_ref().ok_or(Reason::NoRegion)?;
            let placement = match region.picture {
                RegionPicture::Source => source,
                RegionPicture::Target => target,
            };
            let region = on_canvas(region, placement, of_source.size()).ok_or(Reason::RegionOutside)?;
            let ssim_source = mean(of_source, region, None).ok_or(Reason::RegionOutside)?;
            let changed_source = match point.kind {
                PointType::Invariant => None,
                PointType::Direct | PointType::Derived => {
                    Some(mean(of_source, region, Some(footprint)).ok_or(Reason::NoDifference)?)
                }
            };
            Ok(Place { region, ssim_source, changed_source })
        };
        Self { id: point.id.clone(), kind: point.kind, place: place() }
    }

    /// Whether it must be looked at whether the point's region is still that of the source.
    pub(super) fn may_have_stayed(&self, of_target: &SsimMap, settings: &Settings) -> bool {
        let similar = |place: &Place| mean(of_target, place.region, None) >= Some(settings.similar);
        self.kind == PointType::Invariant && self.place.as_ref().is_ok_and(|place| !similar(place))
    }

    /// The verdict on what was seen; nothing if there is nothing to see.
    pub(super) fn decide(&self, seen: Option<&Seen<'_>>, settings: &Settings) -> PointVerdict {
        let place = self.place.as_ref().ok();
        let mut verdict = PointVerdict {
            id: self.id.clone(),
            kind: self.kind,
            satisfied: None,
            reason: Reason::NothingToSee,
            region: place.map(|Place { region: it, .. }| [it.x, it.y, it.width, it.height]),
            ssim: None,
            ssim_source: place.map(|it| it.ssim_source),
            changed: None,
            changed_source: place.and_then(|it| it.changed_source),
            kept: None,
        };
        verdict.reason = match (&self.place, seen) {
            (Err(reason), _) => return PointVerdict { reason: *reason, ..verdict },
            (Ok(_), None) => Reason::NothingToSee,
            (Ok(place), Some(seen)) => {
                verdict.ssim = mean(seen.of_target, place.region, None);
                let is_similar = verdict.ssim >= Some(settings.similar);
                if self.kind == PointType::Invariant {
                    let of_source = seen.of_source.filter(|_| !is_similar);
                    verdict.kept = of_source.and_then(|map| mean(map, place.region, None));
                    match verdict.kept >= Some(settings.similar) {
                        _ if is_similar => Reason::Similar,
                        true => Reason::Kept,
                        false => Reason::Different,
                    }
                } else {
                    verdict.changed = mean(seen.of_target, place.region, Some(seen.footprint));
                    match verdict.changed > place.changed_source {
                        _ if !is_similar => Reason::Different,
                        true => Reason::Similar,
                        false => Reason::Unchanged,
                    }
                }
            }
        };
        verdict.satisfied = Some(matches!(verdict.reason, Reason::Similar | Reason::Kept));
        verdict
    }
}

/// The region where its picture lies on the canvas: every pixel that it touches.
fn on_canvas(region: &Region, placement: &Placement, canvas: Size) -> Option<PixelBox> {
    let own = region.in_pixels(placement.original.width, placement.original.height)?;
    let along = |from: u32, length: u32, of: u32, size: u32, offset: u32, end: u32| {
        let (from, length, of, size) = (u64::from(from), u64::from(length), u64::from(of), u64::from(size));
        let first = u32::try_from(from * size / of).ok()? + offset;
        let last = (u32::try_from(((from + length) * size).div_ceil(of)).ok()? + offset).min(end);
        (last > first).then(|| (first, last - first))
    };
    let Placement { original, size, .. } = placement;
    let (x, width) = along(own.x, own.width, original.width, size.width, placement.x, canvas.width)?;
    let (y, height) = along(own.y, own.height, original.height, size.height, placement.y, canvas.height)?;
    Some(PixelBox { x, y, width, height })
}

/// The mean of a map over a box inside it, or over those of its pixels that are in a set; none over nothing.
fn mean(map: &SsimMap, region: PixelBox, set: Option<&Mask>) -> Option<f64> {
    let width = index(map.size().width);
    let (left, columns) = (index(region.x), index(region.width));
    let (mut sum, mut count) = (0.0, 0);
    for row in (index(region.y)..).take(index(region.height)) {
        let line = row * width + left..row * width + left + columns;
        let values = &map.values()[line.clone()];
        match set {
            None => {
                sum += values.iter().sum::<f64>();
                count += columns;
            }
            Some(set) => {
                for (value, _) in values.iter().zip(&set.bits()[line]).filter(|(_, is_in)| **is_in) {
                    sum += value;
                    count += 1;
                }
            }
        }
    }
    (count > 0).then(|| sum / float(count))
}

#[cfg(test)]
mod tests {
    use proctor_tasks::{Origin, Unit};

    use super::*;
    use crate::canvas::placement;

    #[test]
    fn a_region_follows_its_picture_onto_the_canvas() {
        let region = |[x, y, w, h]: [f64; 4]| Region {
            picture: RegionPicture::Target,
            unit: Unit::Px,
            origin: Origin::TopLeft,
            x,
            y,
            w,
            h,
        };
        let size = |width, height| Size { width, height };
        let on = |values, original, canvas| {
            let found = on_canvas(&region(values), &placement(original, canvas), canvas);
            found.map(|it| [it.x, it.y, it.width, it.height])
        };
        let same = size(100, 80);
        assert_eq!(on([3.0, 4.0, 5.0, 6.0], same, same), Some([3, 4, 5, 6]));
        // Halved, and then centred with 5 columns on each side; pixels that are touched count whole.
        assert_eq!(on([3.0, 4.0, 5.0, 6.0], size(180, 160), same), Some([6, 2, 3, 3]));
        assert_eq!(on([0.0, 0.0, 180.0, 160.0], size(180, 160), same), Some([5, 0, 90, 80]));
        assert_eq!(on([0.0, 0.0, 1.0, 1.0], size(9000, 8000), same), Some([5, 0, 1, 1]));
        assert_eq!(on([170.0, 0.0, 20.0, 1.0], size(180, 160), same), None);
    }
}
