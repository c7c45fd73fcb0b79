//! A question in the words of each wire format. Answers are streamed: a long one is then no silent connection, which
//! proxies cut.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use proctor_traces::WireFormat;
use serde_json::{Map, Value, json};

use super::{ANTHROPIC_OUTPUT, Form, LimitField, Part, Question};

/// Path and body of the request.
pub(super) fn build(wire: WireFormat, question: &Question) -> (String, Bytes) {
    let (path, mut body) = match wire {
        WireFormat::OpenaiResponses => ("/v1/responses".to_owned(), responses(question)),
        // Who answers with pictures is not asked for texts (see `ModelClient::picture`); it would not understand this.
        WireFormat::OpenaiChat | WireFormat::OpenaiImages => {
            ("/v1/chat/completions".to_owned(), chat(question))
        }
        WireFormat::AnthropicMessages => ("/v1/messages".to_owned(), messages(question)),
        WireFormat::GeminiGenerate => {
            (format!("/v1beta/models/{}:streamGenerateContent?alt=sse", question.model), gemini(question))
        }
    };
    body.extend(question.extra.clone());
    (path, Value::Object(body).to_string().into())
}

fn responses(question: &Question) -> Map<String, Value> {
    let content = question.parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Picture { media_type, bytes } => {
            json!({"type": "input_image", "image_url": data_url(media_type, bytes), "detail": "high"})
        }
    });
    let mut body = object(json!({
        "model": question.model,
        "input": [{"role": "user", "content": content.collect::<Vec<_>>()}],
        "stream": true,
        "store": false,
    }));
    if let Some(limit) = question.max_output_tokens {
        body.insert("max_output_tokens".into(), json!(limit));
    }
    if let Some(system) = &question.system {
        body.insert("instructions".into(), json!(system));
    }
    if let Some(level) = &question.reasoning {
        body.insert("reasoning".into(), json!({"effort": level}));
    }
    if let Some(Form { name, schema }) = &question.form {
        let format = json!({"type": "json_schema", "name": name, "schema": schema, "strict": true});
        body.insert("text".into(), json!({"format": format}));
    }
    body
}

fn chat(question: &Question) -> Map<String, Value> {
    let content = question.parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Picture { media_type, bytes } => {
            json!({"type": "image_url", "image_url": {"url": data_url(media_type, bytes)}})
        }
    });
    let user = json!({"role": "user", "content": content.collect::<Vec<_>>()});
    let system = question.system.iter().map(|text| json!({"role": "system", "content": text}));
    let mut body = object(json!({
        "model": question.model,
        "messages": system.chain([user]).collect::<Vec<_>>(),
        "stream": true,
        "stream_options": {"include_usage": true},
    }));
    if let Some(limit) = question.max_output_tokens {
        let field = match question.limit_field {
            LimitField::MaxTokens => "max_tokens",
            LimitField::MaxCompletionTokens => "max_completion_tokens",
        };
        body.insert(field.into(), json!(limit));
    }
    if let Some(level) = &question.reasoning {
        body.insert("reasoning_effort".into(), json!(level));
    }
    if let Some(Form { name, schema }) = &question.form {
        let schema = json!({"name": name, "schema": schema, "strict": true});
        body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": schema}));
    }
    body
}

fn messages(question: &Question) -> Map<String, Value> {
    let content = question.parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Picture { media_type, bytes } => {
            let data = BASE64_STANDARD.encode(bytes);
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
    });
    let mut body = object(json!({
        "model": question.model,
        "messages": [{"role": "user", "content": content.collect::<Vec<_>>()}],
        "max_tokens": question.max_output_tokens.unwrap_or(ANTHROPIC_OUTPUT),
        "stream": true,
    }));
    if let Some(system) = &question.system {
        body.insert("system".into(), json!(system));
    }
    let mut output = Map::new();
    if let Some(level) = &question.reasoning {
        body.insert("thinking".into(), json!({"type": "adaptive"}));
        output.insert("effort".into(), json!(level));
    }
    if let Some(Form { schema, .. }) = &question.form {
        output.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
    }
    if !output.is_empty() {
        body.insert("output_config".into(), Value::Object(output));
    }
    body
}

fn gemini(question: &Question) -> Map<String, Value> {
    let parts = question.parts.iter().map(|part| match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Picture { media_type, bytes } => {
            json!({"inlineData": {"mimeType": media_type, "data": BASE64_STANDARD.encode(bytes)}})
        }
    });
    let mut generation = Map::new();
    if let Some(limit) = question.max_output_tokens {
        generation.insert("maxOutputTokens".into(), json!(limit));
    }
    if let Some(level) = &question.reasoning {
        generation.insert("thinkingConfig".into(), json!({"thinkingLevel": level}));
    }
    if let Some(Form { schema, .. }) = &question.form {
        generation.insert("responseMimeType".into(), json!("application/json"));
        generation.insert("responseJsonSchema".into(), schema.clone());
    }
    let mut body = object(json!({
        "contents": [{"role": "user", "parts": parts.collect::<Vec<_>>()}],
    }));
    if !generation.is_empty() {
        body.insert("generationConfig".into(), Value::Object(generation));
    }
    if let Some(system) = &question.system {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": system}]}));
    }
    body
}

fn data_url(media_type: &str, bytes: &Bytes) -> String {
    format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(bytes))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
