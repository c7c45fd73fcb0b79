//! A question whose answer is a picture.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use proctor_traces::{Usage, WireFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::reply::{Fault, error_message};
use super::{AskError, Kept, ModelClient};
use crate::accounting::Account;
use crate::multipart::{Part, form};
use crate::wire::FETCH;

/// The route by which a picture is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PictureEndpoint {
    /// `POST /v1/images/edits`: a form with the picture as a file, as `OpenAI` has it.
    #[default]
    Edits,
    /// `POST /v1/images/generations`: an object with the picture in it, as others have it.
    Generations,
}

impl fmt::Display for PictureEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Edits => "edits",
            Self::Generations => "generations",
        })
    }
}

/// A picture that is to be edited.
#[derive(Clone, Debug)]
pub struct PictureQuestion {
    /// By which route.
    pub endpoint: PictureEndpoint,
    /// The model, as its provider calls it.
    pub model: String,
    /// What is to be done.
    pub prompt: String,
    /// The picture, a PNG file.
    pub picture: Bytes,
    /// More fields of the request.
    pub extra: Map<String, Value>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureReply {
    /// The file, whatever it is; or why there is none in the answer.
    pub picture: Result<Bytes, String>,
    /// Tokens, as the server counted them.
    pub usage: Option<Usage>,
    /// Failures on the way, one line each.
    pub failures: Vec<String>,
}

/// A picture as a response has it.
enum Returned {
    File(Bytes),
    At(String),
    None(String),
}

impl ModelClient {
    /// Asks for a picture. One that the answer only names is fetched by the gateway, from hosts that its provider lists.
    pub async fn picture(&self, question: &PictureQuestion) -> Result<PictureReply, AskError> {
        let (path, media_type, body) = build(question);
        let Kept { said: (returned, usage), mut failures, .. } =
            self.attempts(path, &media_type, body.into(), read).await?;
        let picture = match returned {
            Returned::File(bytes) => Ok(bytes),
            Returned::None(why) => Err(why),
            Returned::At(url) => {
                let asked = json!({ "url": url }).to_string();
                let kept =
                    self.attempts(FETCH, "application/json", asked.into(), |bytes| Ok(bytes.clone())).await?;
                failures.extend(kept.failures);
                Ok(kept.said)
            }
        };
        Ok(PictureReply { picture, usage, failures })
    }
}

/// Path, content type and body of the request.
fn build(question: &PictureQuestion) -> (&'static str, String, Vec<u8>) {
    let PictureQuestion { endpoint, model, prompt, picture, extra } = question;
    match endpoint {
        PictureEndpoint::Edits => {
            let field =
                |name: &str, content| Part { name: name.to_owned(), file: None, media_type: None, content };
            let more: Vec<(&String, String)> = extra.iter().map(|(key, value)| (key, plain(value))).collect();
            let file = Part {
                file: Some("source.png".to_owned()),
                media_type: Some("image/png".to_owned()),
                ..field("image", picture.as_ref())
            };
            let mut parts = vec![field("model", model.as_bytes()), field("prompt", prompt.as_bytes())];
            parts.extend(more.iter().map(|(key, value)| field(key, value.as_bytes())));
            parts.push(file);
            let (media_type, body) = form(&parts);
            ("/v1/images/edits", media_type, body)
        }
        PictureEndpoint::Generations => {
            let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(picture));
            let mut body = extra.clone();
            body.extend([
                ("model".to_owned(), json!(model)),
                ("prompt".to_owned(), json!(prompt)),
                ("image".to_owned(), json!(url)),
            ]);
            let body = Value::Object(body).to_string().into_bytes();
            ("/v1/images/generations", "application/json".to_owned(), body)
        }
    }
}

/// A value as a form has it: texts without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn read(bytes: &Bytes) -> Result<(Returned, Option<Usage>), Fault> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Fault::Broken(format!("the response is no whole JSON: {error}")))?;
    if value.get("error").is_some_and(|it| !it.is_null()) {
        return Err(Fault::Broken(format!("the server failed on the way: {}", error_message(bytes))));
    }
    let Some(data) = value["data"].as_array() else {
        return Err(Fault::Foreign("there is no `data` in the response".to_owned()));
    };
    let usage = Account::of_response(WireFormat::OpenaiImages, bytes).usage;
    Ok((first(data), usage))
}

fn first(data: &[Value]) -> Returned {
    let Some(first) = data.first() else {
        return Returned::None("there is no picture in the answer".to_owned());
    };
    let text = |key: &str| first[key].as_str().filter(|it| !it.is_empty());
    let inline = text("b64_json").or_else(|| text("url").filter(|url| url.starts_with("data:")));
    match (inline, text("url")) {
        (Some(inline), _) => decoded(inline),
        (None, Some(url)) => Returned::At(url.to_owned()),
        (None, None) => Returned::None("there is no picture in the answer".to_owned()),
    }
}

/// A file in base64, with or without the head of a `data:` URL.
fn decoded(text: &str) -> Returned {
    let base64 = match text.strip_prefix("data:").and_then(|it| it.split_once(',')) {
        Some((head, base64)) if head.ends_with(";base64") => base64,
        Some(_) => return Returned::None("the picture in the answer is no base64".to_owned()),
        None => text,
    };
    match BASE64_STANDARD.decode(base64.trim()) {
        Ok(bytes) if !bytes.is_empty() => Returned::File(bytes.into()),
        _ => Returned::None("the picture in the answer is no base64".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multipart::parts;

    fn question(endpoint: PictureEndpoint) -> PictureQuestion {
        let extra = json!({"size": "1024x1024", "output_compression": 90});
        let Value::Object(extra) = extra else { panic!() };
        PictureQuestion {
            endpoint,
            model: "m".to_owned(),
            prompt: "Make it \"red\".".to_owned(),
            picture: Bytes::from_static(b"\x89PNG"),
            extra,
        }
    }

    #[test]
    fn both_routes_say_what_is_configured_and_no_more() {
        let (path, media_type, body) = build(&question(PictureEndpoint::Edits));
        assert!(path == "/v1/images/edits" && media_type.starts_with("multipart/form-data; boundary="));
        let found: Vec<(String, &[u8])> =
            parts(&body).unwrap().into_iter().map(|part| (part.name, part.content)).collect();
        let expected: [(&str, &[u8]); 5] = [
            ("model", b"m"),
            ("prompt", b"Make it \"red\"."),
            ("output_compression", b"90"),
            ("size", b"1024x1024"),
            ("image", b"\x89PNG"),
        ];
        assert_eq!(found, expected.map(|(name, content)| (name.to_owned(), content)));

        let (path, _, body) = build(&question(PictureEndpoint::Generations));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(path, "/v1/images/generations");
        assert_eq!(
            body,
            json!({"model": "m", "prompt": "Make it \"red\".", "size": "1024x1024", "output_compression": 90,
                "image": "data:image/png;base64,iVBORw=="})
        );
    }

    #[test]
    fn a_picture_is_inline_or_elsewhere_or_not_there() {
        let of = |text: &str| match read(&Bytes::copy_from_slice(text.as_bytes())) {
            Ok((Returned::File(bytes), usage)) => {
                format!("{bytes:?} {}", usage.unwrap_or_default().output_tokens)
            }
            Ok((Returned::At(url), _)) => url,
            Ok((Returned::None(why), _)) => why,
            Err(fault) => format!("{fault:?}"),
        };
        for (text, expected) in [
            (r#"{"data":[{"b64_json":"aGk="}],"usage":{"input_tokens":9,"output_tokens":7}}"#, "b\"hi\" 7"),
            (r#"{"data":[{"url":"data:image/png;base64,aGk="}]}"#, "b\"hi\" 0"),
            (r#"{"data":[{"b64_json":null,"url":"https://x/y"}]}"#, "https://x/y"),
            (r#"{"data":[]}"#, "there is no picture in the answer"),
            (r#"{"data":[{"revised_prompt":"no"}]}"#, "there is no picture in the answer"),
            (r#"{"data":[{"b64_json":"%%"}]}"#, "the picture in the answer is no base64"),
            (r#"{"data":[{"url":"data:text/plain,hi"}]}"#, "the picture in the answer is no base64"),
            (r#"{"created":1}"#, "Foreign(\"there is no `data` in the response\")"),
            (r#"{"error":{"message":"overloaded"}}"#, "Broken(\"the server failed on the way: overloaded\")"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        assert!(of("{\"data\":[").starts_with("Broken"));
    }
}
