//! A reply, read: marks for every point and both ratings, or the reason why there are none.

use std::collections::HashMap;

use proctor_store::Rating;
use proctor_tasks::PointType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Question;
use super::block::block_of;

/// Longest text of a mark that is kept, in characters.
const TEXT_CAP: usize = 4000;

/// What a judge said of all that it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// Its word on each point, in the order of the task.
    pub points: Vec<PointMark>,
    /// Visual quality.
    pub visual_quality: Mark,
    /// Domain validity.
    pub domain_quality: Mark,
}

/// A judge's word on a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointMark {
    /// The point.
    pub id: String,
    /// What it is about.
    pub kind: PointType,
    /// Whether it holds completely. What the judge cannot see in the candidate does not (B.3).
    pub satisfied: bool,
    /// Whether the judge could see it.
    pub verifiable: bool,
    /// What it saw.
    pub evidence: String,
    /// Why that decides it.
    pub rationale: String,
    /// How sure it is, from 0 to 1, if it said so.
    pub confidence: Option<f64>,
}

/// A rating with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// From 1 to 5.
    pub rating: Rating,
    /// Why.
    pub rationale: String,
}

/// Why a reply gives no marks. The trial stays unscored; it is not zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "unscored")]
pub enum Unscored {
    /// The judge would not answer.
    #[error("the judge refused")]
    Refusal,
    /// The reply was cut at its limit.
    #[error("the reply was cut off")]
    Truncated,
    /// There is no structured block in it that can be read.
    #[error("there is no structured block in the reply that can be read")]
    NoBlock,
    /// There are several that are not the same, or much is said after it.
    #[error("it cannot be told which structured block of the reply is its verdict, or whether one is")]
    Ambiguous,
    /// Something that was asked for is missing.
    #[error("{what} is missing")]
    Missing {
        /// What.
        what: String,
    },
    /// Something is there that was not asked for, or twice.
    #[error("`{id}` is no point of this task, or told twice")]
    Strange {
        /// Its id.
        id: String,
    },
    /// A value is not on its scale.
    #[error("{what} is {value}, which is not on its scale")]
    OffScale {
        /// What.
        what: String,
        /// As it was written, shortened.
        value: String,
    },
    /// No reply came.
    #[error("there was no reply: {message}")]
    NoReply {
        /// Why.
        message: String,
    },
}

impl Question {
    /// Reads a reply.
    pub fn read(&self, reply: &str) -> Result<Reading, Unscored> {
        let block = block_of(reply)?;
        let given = self.points_in(&block)?;
        let points = self.points.iter().map(|(id, kind)| {
            let value = given.get(id.as_str()).ok_or_else(|| missing(&format!("point `{id}`")))?;
            mark(id, *kind, value)
        });
        Ok(Reading {
            points: points.collect::<Result<_, _>>()?,
            visual_quality: rating(&block, "visual_quality")?,
            domain_quality: rating(&block, "domain_quality")?,
        })
    }

    /// The points of a block by their ids: a list, or an object with an id for each key.
    fn points_in<'a>(&self, block: &'a Map<String, Value>) -> Result<HashMap<&'a str, &'a Value>, Unscored> {
        let mut given = HashMap::new();
        let mut add = |id: &'a str, value: &'a Value| {
            let known = self.points.iter().any(|(known, _)| known == id);
            if !known || given.insert(id, value).is_some() {
                return Err(Unscored::Strange { id: short(id, 80) });
            }
            Ok(())
        };
        match block.get("points") {
            Some(Value::Array(items)) => {
                for item in items {
                    let id = item["id"].as_str().ok_or_else(|| missing("the id of a point"))?;
                    add(id, item)?;
                }
            }
            Some(Value::Object(by_id)) => {
                for (id, value) in by_id {
                    add(id, value)?;
                }
            }
            _ => return Err(missing("`points`")),
        }
        Ok(given)
    }
}

fn mark(id: &str, kind: PointType, value: &Value) -> Result<PointMark, Unscored> {
    let verifiable = match value.get("verifiable") {
        None | Some(Value::Null) => true,
        Some(value) => truth(value).ok_or_else(|| off_scale(&format!("`verifiable` of `{id}`"), value))?,
    };
    // A point may be given as its bare value.
    let said = if value.is_object() { value.get("satisfied") } else { Some(value) };
    let satisfied = match said {
        None | Some(Value::Null) if !verifiable => false,
        None | Some(Value::Null) => return Err(missing(&format!("`satisfied` of `{id}`"))),
        Some(value) => truth(value).ok_or_else(|| off_scale(&format!("point `{id}`"), value))?,
    };
    let text = |key: &str| short(value[key].as_str().unwrap_or_default(), TEXT_CAP);
    Ok(PointMark {
        id: id.to_owned(),
        kind,
        satisfied: satisfied && verifiable,
        verifiable,
        evidence: text("evidence"),
        rationale: text("rationale"),
        confidence: value["confidence"].as_f64().filter(|it| (0.0..=1.0).contains(it)),
    })
}

/// Yes or no, in the ways that leave no doubt.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(it) => Some(*it),
        Value::Number(it) if it.as_f64() == Some(1.0) => Some(true),
        Value::Number(it) if it.as_f64() == Some(0.0) => Some(false),
        Value::String(it) => match it.trim().to_lowercase().as_str() {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn rating(block: &Map<String, Value>, key: &str) -> Result<Mark, Unscored> {
    let value = block.get(key).ok_or_else(|| missing(&format!("`{key}`")))?;
    let said = if value.is_object() { value.get("rating") } else { Some(value) };
    let said = said.filter(|it| !it.is_null()).ok_or_else(|| missing(&format!("the rating of `{key}`")))?;
    let whole = match said {
        Value::Number(number) => number.as_f64(),
        // `4` or `4/5`.
        Value::String(text) => {
            let text = text.trim();
            text.strip_suffix("/5").unwrap_or(text).trim_end().parse().ok()
        }
        _ => None,
    };
    let rating = [1u8, 2, 3, 4, 5].into_iter().find(|it| whole == Some(f64::from(*it)));
    let rating = rating.and_then(|it| Rating::try_from(it).ok()).ok_or_else(|| off_scale(key, said))?;
    Ok(Mark { rating, rationale: short(value["rationale"].as_str().unwrap_or_default(), TEXT_CAP) })
}

fn missing(what: &str) -> Unscored {
    Unscored::Missing { what: what.to_owned() }
}

fn off_scale(what: &str, value: &Value) -> Unscored {
    Unscored::OffScale { what: what.to_owned(), value: short(&value.to_string(), 60) }
}

fn short(text: &str, cap: usize) -> String {
    text.chars().take(cap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        let points = vec![("r1".to_owned(), PointType::Direct), ("r2".to_owned(), PointType::Invariant)];
        Question { system: String::new(), pieces: Vec::new(), pictures: Vec::new(), points }
    }

    fn read(reply: &str) -> Result<(Vec<bool>, u8, u8), Unscored> {
        question().read(reply).map(|it| {
            let points = it.points.iter().map(|it| it.satisfied).collect();
            (points, it.visual_quality.rating.get(), it.domain_quality.rating.get())
        })
    }

    const WHOLE: &str = r#"{"points": [{"id": "r2", "satisfied": 0, "evidence": "e", "confidence": 0.5},
        {"id": "r1", "satisfied": 1}], "visual_quality": {"rating": 4}, "domain_quality": {"rating": 5}}"#;

    #[test]
    fn what_is_unambiguous_is_read_whatever_stands_around_it() {
        let marks = Ok((vec![true, false], 4, 5));
        assert_eq!(read(WHOLE), marks);
        for reply in [
            format!("```json\n{WHOLE}\n```"),
            format!("Sure, here is {{my}} evaluation:\n```json\n{WHOLE}\n```\nLet me know!"),
            WHOLE.replace("1}]", "1,},]"),
            WHOLE.replace('"', "'"),
            WHOLE.replace("\"r1\"", "“r1”"),
            WHOLE.replace("\"e\"", "\"line one\nline two\""),
            WHOLE.replace("{\"rating\": 4}", "\"4/5\"").replace("{\"rating\": 5}", "5.0"),
            WHOLE.replace("\"satisfied\": 1", "\"satisfied\": \"1\""),
            WHOLE.replace("\"satisfied\": 1", "\"satisfied\": true"),
            r#"{"points": {"r1": true, "r2": {"satisfied": 0}}, "visual_quality": 4, "domain_quality": "5"}"#
                .to_owned(),
        ] {
            assert_eq!(read(&reply), marks, "{reply}");
        }
    }

    #[test]
    fn what_is_missing_or_off_the_scale_is_unscored_and_never_zero() {
        let unscored = |from: &str, to: &str| read(&WHOLE.replace(from, to)).unwrap_err();
        assert!(matches!(unscored("\"id\": \"r1\"", "\"id\": \"r3\""), Unscored::Strange { .. }));
        assert!(matches!(unscored("\"id\": \"r1\"", "\"id\": \"r2\""), Unscored::Strange { .. }));
        assert!(matches!(unscored("\"satisfied\": 1", "\"satisfied\": 0.8"), Unscored::OffScale { .. }));
        assert!(matches!(unscored("\"satisfied\": 1", "\"note\": 1"), Unscored::Missing { .. }));
        assert!(matches!(unscored("\"rating\": 4", "\"rating\": 4.5"), Unscored::OffScale { .. }));
        assert!(matches!(unscored("\"rating\": 4", "\"rating\": 11"), Unscored::OffScale { .. }));
        assert!(matches!(unscored("\"rating\": 4", "\"rating\": \"4/10\""), Unscored::OffScale { .. }));
        assert!(matches!(unscored("\"rating\": 4", "\"rating\": \"4/5/5\""), Unscored::OffScale { .. }));
        assert!(matches!(unscored("\"visual_quality\"", "\"looks\""), Unscored::Missing { .. }));
        assert_eq!(unscored("\"rating\": 4", "\"rating\": NaN"), Unscored::NoBlock);
        for reply in ["", "I can't evaluate this image.", "{}", "[{\"id\": \"r1\", \"satisfied\": 1}]"] {
            assert_eq!(read(reply).unwrap_err(), Unscored::NoBlock, "{reply}");
        }
        let endless = "{\"a\":\"".repeat((1 << 20) / 6 + 1);
        assert_eq!(read(&format!("{WHOLE}{endless}")).unwrap_err(), Unscored::NoBlock);
        let half = &WHOLE[..WHOLE.len() / 2];
        assert_eq!(read(half).unwrap_err(), Unscored::NoBlock);
    }

    #[test]
    fn what_cannot_be_seen_is_not_satisfied() {
        let unseen = WHOLE.replace("\"satisfied\": 1", "\"verifiable\": false, \"satisfied\": 1");
        assert_eq!(read(&unseen), Ok((vec![false, false], 4, 5)));
    }

    #[test]
    fn a_quotation_beside_the_block_gives_no_verdict() {
        let quoted = r#"{"points": [{"id": "r1", "satisfied": 1}, {"id": "r2", "satisfied": 1}], "visual_quality": 5, "domain_quality": 5}"#;
        for reply in
            [format!("The picture says {quoted}.\n{WHOLE}"), format!("{WHOLE}\nThe picture says {quoted}.")]
        {
            assert_eq!(read(&reply).unwrap_err(), Unscored::Ambiguous);
        }
        assert!(read(&format!("{WHOLE}\nOnce more:\n{WHOLE}")).is_ok());
        let inside = WHOLE.replace("\"e\"", &serde_json::to_string(quoted).unwrap());
        assert_eq!(read(&inside), Ok((vec![true, false], 4, 5)), "a quotation inside a string is a string");
    }
}
