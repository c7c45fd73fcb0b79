//! The measures of a candidate against the reference of its task.

use proctor_tasks::Annotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blank::{is_blank, steps};
use super::point::{PreparedPoint, Seen};
use super::{Mask, PointVerdict, Settings};
use crate::canvas::{Placement, canvas_of, fit};
use crate::colour::{Lab, difference};
use crate::metrics::{MetricError, SsimMap};
use crate::{Picture, Size, float};

/// What a task's candidates are measured against, made once for all of them.
pub struct Reference {
    settings: Settings,
    source: Picture,
    target: Picture,
    source_placement: Placement,
    target_placement: Placement,
    footprint: Mask,
    in_footprint: usize,
    /// SSIM of target and source within the footprint; none if that is empty.
    ssim_source: Option<f64>,
    target_steps: [usize; 2],
    points: Vec<PreparedPoint>,
}

/// What was measured of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// The canvas: that of the target.
    pub canvas: Size,
    /// Where the target lies on it.
    pub target: Placement,
    /// Where the source lies on it.
    pub source: Placement,
    /// Where the candidate lies on it.
    pub candidate: Placement,
    /// The share of the canvas where source and target differ.
    pub footprint: f64,
    /// There is next to nothing on it. Then all else is 0.
    pub blank: bool,
    /// The edit: none if source and target do not differ.
    pub in_box: Option<InBox>,
    /// Everything else: none if there is nothing else.
    pub out_of_box: Option<OutOfBox>,
}

/// How far the edit was made, from the pixels of the footprint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InBox {
    /// SSIM of target and candidate: the paper's measure. A source that was left as it is has some too.
    pub ssim: f64,
    /// SSIM of target and source.
    pub ssim_source: f64,
    /// `(ssim − ssim_source) / (1 − ssim_source)`, not below 0 and not above 1: the unchanged source has 0, the target 1.
    /// Ours.
    pub normalised: f64,
}

/// How far everything else was left alone, from the pixels outside the footprint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutOfBox {
    /// SSIM of target and candidate, where what is in the footprint is thought to be right.
    pub ssim: f64,
    /// The share of pixels whose colour is another one.
    pub recoloured: f64,
    /// `ssim − colour_weight · recoloured`, not below 0.
    pub score: f64,
}

impl Reference {
    /// Lays source and target on the canvas of the target.
    pub fn new(
        source: &Picture,
        target: &Picture,
        annotations: &Annotations,
        settings: Settings,
    ) -> Result<Self, MetricError> {
        let canvas = canvas_of(target.size());
        let (target, target_placement) = fit(target, canvas);
        let (source, source_placement) = fit(source, canvas);
        let footprint = Mask::of_differences(&target, &source, settings.tolerance).dilated(settings.dilation);
        let of_source = SsimMap::of(&target, &source)?;
        let placements = [&source_placement, &target_placement];
        let points = annotations.scoring_points.iter();
        Ok(Self {
            settings,
            ssim_source: mean_where(&of_source, footprint.bits(), true),
            target_steps: steps(&target),
            points: points
                .map(|point| PreparedPoint::new(point, placements, &of_source, &footprint))
                .collect(),
            in_footprint: footprint.count(),
            footprint,
            source,
            target,
            source_placement,
            target_placement,
        })
    }

    /// Whether source and target look the same.
    pub fn is_without_edit(&self) -> bool {
        self.in_footprint == 0
    }

    /// Measures a candidate and decides the points.
    pub fn judge(&self, candidate: &Picture) -> Result<(Findings, Vec<PointVerdict>), MetricError> {
        let canvas = self.target.size();
        let (candidate, placement) = fit(candidate, canvas);
        let blank = is_blank(steps(&candidate), self.target_steps, self.settings.blank);
        let map = if blank { None } else { Some(SsimMap::of(&self.target, &candidate)?) };
        let (in_box, out_of_box) = if let Some(map) = &map {
            let inside = mean_where(map, self.footprint.bits(), true);
            let in_box = self.ssim_source.zip(inside).map(|(of_source, ssim)| in_box_of(ssim, of_source));
            (in_box, self.outside(&candidate)?)
        } else {
            let in_box = |ssim_source| InBox { ssim: 0.0, ssim_source, normalised: 0.0 };
            let out_of_box = OutOfBox { ssim: 0.0, recoloured: 0.0, score: 0.0 };
            let is_outside = self.in_footprint < canvas.pixels();
            (self.ssim_source.map(in_box), is_outside.then_some(out_of_box))
        };
        let findings = Findings {
            canvas,
            target: self.target_placement,
            source: self.source_placement,
            candidate: placement,
            footprint: float(self.in_footprint) / float(canvas.pixels()),
            blank,
            in_box,
            out_of_box,
        };
        let points = match &map {
            None => self.without_picture(),
            Some(of_target) => {
                let needs_source = |point: &PreparedPoint| point.may_have_stayed(of_target, &self.settings);
                let of_source = if self.points.iter().any(needs_source) {
                    Some(SsimMap::of(&self.source, &candidate)?)
                } else {
                    None
                };
                let seen = Seen { of_target, of_source: of_source.as_ref(), footprint: &self.footprint };
                self.points.iter().map(|point| point.decide(Some(&seen), &self.settings)).collect()
            }
        };
        Ok((findings, points))
    }

    /// The points where there is no picture at all.
    pub fn without_picture(&self) -> Vec<PointVerdict> {
        self.points.iter().map(|point| point.decide(None, &self.settings)).collect()
    }

    /// What is wrong inside must not count outside: the window reaches over the edge of the footprint.
    fn outside(&self, candidate: &Picture) -> Result<Option<OutOfBox>, MetricError> {
        let mut pasted = candidate.clone();
        let pixels = pasted.pixels_mut().iter_mut().zip(self.target.pixels()).zip(self.footprint.bits());
        let mut recoloured = 0;
        for ((pixel, target), is_inside) in pixels {
            if *is_inside {
                *pixel = *target;
            } else if pixel != target {
                let by = difference(Lab::from(*pixel), Lab::from(*target));
                recoloured += usize::from(by > self.settings.colour_difference);
            }
        }
        let map = SsimMap::of(&self.target, &pasted)?;
        Ok(mean_where(&map, self.footprint.bits(), false).map(|ssim| {
            let outside = self.footprint.bits().len() - self.in_footprint;
            let recoloured = float(recoloured) / float(outside);
            OutOfBox { ssim, recoloured, score: (ssim - self.settings.colour_weight * recoloured).max(0.0) }
        }))
    }
}

fn in_box_of(ssim: f64, ssim_source: f64) -> InBox {
    // Where they differ at all, the similarity is below 1; rounding could still say otherwise.
    let room = (1.0 - ssim_source).max(f64::EPSILON);
    InBox { ssim, ssim_source, normalised: ((ssim - ssim_source) / room).clamp(0.0, 1.0) }
}

/// The mean of a map over the pixels that are in a set, or over those that are not; none over nothing.
fn mean_where(map: &SsimMap, set: &[bool], inside: bool) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for (value, _) in map.values().iter().zip(set).filter(|(_, is_in)| **is_in == inside) {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / float(count))
}
